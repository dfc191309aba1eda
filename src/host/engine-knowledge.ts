// What the programs of the engines said about themselves: their version, and whether they can continue a conversation
// in another process. A program is probed once as it is (path, size, time of change); the result is kept in memory and
// in the data directory. A probe that fails, crashes or hangs proves nothing: such a program does not count as one that
// can resume, and it is probed again after a while.
import { statSync } from 'node:fs';
import type { Engine } from '../engines/engine.js';
import { probeResume, probeVersion } from '../engines/probe.js';
import type { Clock } from '../kernel/clock.js';
import type { JsonObject } from '../kernel/json.js';
import type { ResumeKnowledge } from '../journal/deps.js';
import type { Timers } from '../process/timers.js';
import type { KnowledgeFile } from './knowledge-file.js';
import { findProgram, type Machine } from './machine.js';
import { packageVersion } from './package-version.js';
import { queryProgram } from './query-program.js';
import type { Settings } from './settings.js';

// For the version and for the help each; the slowest CLI needs about two seconds on an idle machine.
const ANSWER_LIMIT_MS = 5000;
// After that a probe without a result is repeated.
const RETRY_AFTER_MS = 10 * 60 * 1000;
// A wrapper script stays the same when the program behind it is updated: after that its facts are still used, but
// probed again.
const REFRESH_AFTER_MS = 24 * 60 * 60 * 1000;
const SECTION = 'programs';

export interface ProgramFacts extends ResumeKnowledge {
  readonly version: string | null;
}

interface Entry {
  readonly facts: ProgramFacts;
  readonly probedAt: number;
  // The program said so itself; otherwise the probe had no result.
  readonly isProved: boolean;
}

interface Program {
  readonly words: readonly string[];
  readonly bin: string;
  // Changes with the program.
  readonly key: string;
}

export interface KnowledgeDeps {
  readonly machine: Machine;
  readonly settings: Settings;
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

  // What is known of the engine's program as it is now; null: nothing yet, or no program. Starts nothing.
  known(engine: Engine): ProgramFacts | null {
    if (engine.probe.bundled !== undefined)
      return { version: engine.probe.provedVersion, resumes: true, problem: null };
    const program = this.#find(engine);
    const entry = program && this.#entries.get(program.key);
    if (!entry || (!entry.isProved && this.#ageOf(entry) >= RETRY_AFTER_MS)) return null;
    return entry.facts;
  }

  // Probes the program unless that was done; null: there is no program. Several callers share one probe.
  async learn(engine: Engine): Promise<ProgramFacts | null> {
    const known = this.known(engine);
    const program = engine.probe.bundled === undefined ? this.#find(engine) : null;
    if (program === null) return known;
    const entry = this.#entries.get(program.key);
    if (known && entry && this.#ageOf(entry) < REFRESH_AFTER_MS) return known;
    const probe = this.#probes.get(program.key) ?? this.#probe(engine, program);
    return known ?? probe;
  }

  // One after the other: a CLI that starts is a heavy thing.
  async learnAll(engines: readonly Engine[]): Promise<void> {
    for (const engine of engines) if (!this.#closing.signal.aborted) await this.learn(engine);
  }

  // Ends probes that run; nothing of them is left when this resolves.
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
    const probe = this.#ask(engine, program).then((entry) => {
      this.#probes.delete(program.key);
      if (this.#closing.signal.aborted) return entry.facts;
      this.#entries.set(program.key, entry);
      if (entry.isProved) this.#deps.file.set(SECTION, program.key, { ...entry.facts, probed_at: entry.probedAt });
      return entry.facts;
    });
    this.#probes.set(program.key, probe);
    return probe;
  }

  async #ask(engine: Engine, { words, bin }: Program): Promise<Entry> {
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
          advice: [problem = null],
        },
      ] = await Promise.all([
        packaged === undefined ? probeVersion(bin, engine.probe, deps) : { version: packaged },
        probeResume(bin, engine.probe.resume, deps),
      ]);
      return {
        facts: { version, resumes: resumes === true, problem },
        probedAt: clock.now(),
        isProved: resumes !== null,
      };
    } catch (error) {
      const problem = `${bin} cannot be probed: ${error instanceof Error ? error.message : String(error)}`;
      return { facts: { version: null, resumes: false, problem }, probedAt: clock.now(), isProved: false };
    }
  }
}

// Null for an entry that is not ours.
function readEntry({ version, resumes, problem, probed_at: probedAt }: JsonObject): Entry | null {
  if (typeof resumes !== 'boolean' || typeof probedAt !== 'number') return null;
  return { facts: { version: textOrNull(version), resumes, problem: textOrNull(problem) }, probedAt, isProved: true };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
