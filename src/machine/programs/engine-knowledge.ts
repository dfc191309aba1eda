// Probes the programs of engines for their version and for the ability to continue a conversation in another process.
// Each program is probed once per state of its file (path, size, modification time); the result is kept in memory and
// in the data directory. A probe that fails, crashes or hangs proves nothing: the program is treated as unable to
// resume, and it is probed again later.
import { statSync } from 'node:fs';
import type { Engine } from '../../engines/engine.js';
import { probeResume, probeVersion } from './probe-engine.js';
import type { Clock } from '../../kernel/clock.js';
import type { JsonObject } from '../../kernel/json.js';
import type { ResumeKnowledge } from '../engine-runtime.js';
import type { Timers } from '../../process/timers.js';
import type { KnowledgeFile } from '../knowledge-file.js';
import type { Machine } from '../machine.js';
import { findProgram } from './find-program.js';
import { packageVersion } from './package-version.js';
import { queryProgram } from './query-program.js';
import type { Settings } from '../../settings/settings.js';

// Applies to the version and to the help separately; the slowest CLI needs about two seconds on an idle machine.
const ANSWER_LIMIT_MS = 5000;
// A probe without a result is repeated after this time.
const RETRY_AFTER_MS = 10 * 60 * 1000;
// A wrapper script does not change when the program behind it is updated. After this time the facts are still used, but
// the program is probed again.
const REFRESH_AFTER_MS = 24 * 60 * 60 * 1000;
const SECTION = 'programs';

export interface ProgramFacts extends ResumeKnowledge {
  readonly version: string | null;
}

interface Entry {
  readonly facts: ProgramFacts;
  readonly probedAt: number;
  // False: the probe had no result.
  readonly isProved: boolean;
}

interface Program {
  readonly words: readonly string[];
  readonly bin: string;
  // Changes when the program changes.
  readonly key: string;
}

export interface KnowledgeDeps {
  readonly machine: Machine;
  readonly settings: Pick<Settings, 'engines' | 'env_passthrough'>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly file: KnowledgeFile;
}

export class EngineKnowledge {
  readonly #deps: KnowledgeDeps;
  readonly #entries = new Map<string, Entry>();
  readonly #probes = new Map<string, Promise<ProgramFacts>>();
  readonly #closing = new AbortController();

  constructor(deps: KnowledgeDeps) {
    this.#deps = deps;
    for (const [key, value] of deps.file.read(SECTION)) {
      const entry = readEntry(value);
      if (entry) this.#entries.set(key, entry);
    }
  }

  // Returns the facts about the engine's current program. Null: not probed yet, or no program. Starts no process.
  known(engine: Engine): ProgramFacts | null {
    if (engine.probe.bundled !== undefined)
      return { version: engine.probe.provedVersion, resumes: true, problem: null };
    const program = this.#find(engine);
    const entry = program && this.#entries.get(program.key);
    if (!entry || (!entry.isProved && this.#ageOf(entry) >= RETRY_AFTER_MS)) return null;
    return entry.facts;
  }

  // Probes the program unless its facts are known. Null: there is no program. Concurrent callers share one probe.
  async learn(engine: Engine): Promise<ProgramFacts | null> {
    const known = this.known(engine);
    const program = engine.probe.bundled === undefined ? this.#find(engine) : null;
    if (program === null) return known;
    const entry = this.#entries.get(program.key);
    if (known && entry && this.#ageOf(entry) < REFRESH_AFTER_MS) return known;
    const probe = this.#probes.get(program.key) ?? this.#probe(engine, program);
    return known ?? probe;
  }

  // Probes one engine after the other, because starting a CLI needs much CPU time and memory.
  async learnAll(engines: readonly Engine[]): Promise<void> {
    for (const engine of engines) if (!this.#closing.signal.aborted) await this.learn(engine);
  }

  // Ends running probes. No process of them remains when this resolves.
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#probes.values());
    await this.#deps.file.written();
  }

  #ageOf({ probedAt }: Entry): number {
    return Math.abs(this.#deps.clock.now() - probedAt);
  }

  #find(engine: Engine): Program | null {
    const { machine, settings } = this.#deps;
    const { program: words } = findProgram(engine, machine, settings);
    const bin = words?.at(-1);
    const file = bin === undefined ? undefined : statSync(bin, { throwIfNoEntry: false });
    if (words === null || bin === undefined || !file) return null;
    return {
      words,
      bin,
      key: [bin, file.size, Math.trunc(file.mtimeMs), engine.probe.resume?.args.join(' ') ?? ''].join('|'),
    };
  }

  #probe(engine: Engine, program: Program): Promise<ProgramFacts> {
    const probe = this.#query(engine, program).then((entry) => {
      this.#probes.delete(program.key);
      if (this.#closing.signal.aborted) return entry.facts;
      this.#entries.set(program.key, entry);
      if (entry.isProved) this.#deps.file.set(SECTION, program.key, { ...entry.facts, probed_at: entry.probedAt });
      return entry.facts;
    });
    this.#probes.set(program.key, probe);
    return probe;
  }

  async #query(engine: Engine, { words, bin }: Program): Promise<Entry> {
    const {
      machine: { user },
      settings: { env_passthrough: passthrough },
      timers,
      clock,
    } = this.#deps;
    const query = {
      engine,
      program: words,
      user,
      passthrough,
      limitMs: ANSWER_LIMIT_MS,
      timers,
      signal: this.#closing.signal,
    };
    const deps = { run: (_bin: string, args: readonly string[]) => queryProgram({ ...query, args }) };
    try {
      const packaged = packageVersion(engine, words);
      const [
        { version },
        {
          resumes,
          advice: [problem],
        },
      ] = await Promise.all([
        packaged === undefined ? probeVersion(bin, engine.probe, deps) : { version: packaged },
        probeResume(bin, engine.probe.resume, deps),
      ]);
      return {
        facts: { version, resumes: resumes === true, problem: problem?.text ?? null },
        probedAt: clock.now(),
        isProved: resumes !== null,
      };
    } catch (error) {
      const problem = `${bin} cannot be probed: ${error instanceof Error ? error.message : String(error)}`;
      return { facts: { version: null, resumes: false, problem }, probedAt: clock.now(), isProved: false };
    }
  }
}

// Returns null for an entry of another form.
function readEntry({ version, resumes, problem, probed_at: probedAt }: JsonObject): Entry | null {
  if (typeof resumes !== 'boolean' || typeof probedAt !== 'number') return null;
  return { facts: { version: textOrNull(version), resumes, problem: textOrNull(problem) }, probedAt, isProved: true };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
