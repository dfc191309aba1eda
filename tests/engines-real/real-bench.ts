// Parley on a real CLI: an orchestrator with the host that the command line uses, a person whose settings point to a scripted
// model, and a data directory, all in a folder of their own.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect } from 'vitest';
import { ENGINE_PROGRAMS } from '../../scripts/install-engines.mjs';
import { createEngineHost } from '../../src/host/engine-host.js';
import { DEFAULT_SETTINGS } from '../../src/host/settings.js';
import { systemClock } from '../../src/kernel/clock.js';
import { createIds } from '../../src/kernel/ids.js';
import type { CreateRunRequest } from '../../src/orchestrator/create-request.js';
import type { OrchestratorDeps } from '../../src/orchestrator/deps.js';
import { Orchestrator } from '../../src/orchestrator/orchestrator.js';
import { verifyRun } from '../../src/orchestrator/verify-run.js';
import { systemTimers } from '../../src/process/timers.js';
import type { RaspEvent } from '../../src/rasp/event.js';
import { openDataDir, type DataDir } from '../../src/store/sqlite/data-dir.js';
import type { RunRecord } from '../../src/store/store.js';
import { expectSound, type Bench } from '../support/orchestrated.js';
import { startCodexModel } from '../models/codex-model.js';
import { startGeminiModel } from '../models/gemini-model.js';
import type { ModelServer } from '../models/model-server.js';
import { CODEX_MODEL, GEMINI_MODEL, OFFLINE, OPENCODE_MODEL, type RealEngine } from '../models/offline-config.js';
import { startOpencodeModel } from '../models/opencode-model.js';

const START = { codex: startCodexModel, gemini: startGeminiModel, opencode: startOpencodeModel };
const MODELS = { codex: CODEX_MODEL, gemini: GEMINI_MODEL, opencode: OPENCODE_MODEL };
const ENTRY = fileURLToPath(new URL('../../bin/parley.js', import.meta.url));
// Where a person keeps what belongs into the home of an engine.
const USER_PLACES: readonly (readonly [string, string])[] = [['config/', '.config/']];

export const REAL_ENGINES = ['codex', 'gemini', 'opencode'] as const satisfies readonly RealEngine[];

export interface RealBench extends Bench {
  readonly engine: RealEngine;
  readonly root: string;
  readonly cwd: string;
  readonly model: ModelServer;
  readonly modelName: string;
  play(prompt: string, rest?: Partial<CreateRunRequest>): Promise<RunRecord>;
  settled(runId: string): Promise<RunRecord>;
  reply(runId: string, response: string): Promise<RunRecord>;
  // Everything is killed but what is stored; a new orchestrator opens on it.
  reopen(): Promise<RealBench>;
  events(runId: string): Promise<RaspEvent[]>;
}

const endings: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end();
});

export interface BenchOptions {
  // What the name of the folder has, beside letters.
  readonly oddly?: string;
  // More of the person's environment; undefined: less.
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export async function openRealBench(engine: RealEngine, options: BenchOptions = {}): Promise<RealBench> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), `parley-real-${engine}-${options.oddly ?? ''}`)));
  endings.push(() => rmSync(root, { recursive: true, force: true, maxRetries: 5 }));
  const model = await START[engine]();
  endings.push(() => model.close());
  return open(engine, root, model, options);
}

async function open(engine: RealEngine, root: string, model: ModelServer, options: BenchOptions): Promise<RealBench> {
  const cwd = join(root, 'work');
  mkdirSync(cwd, { recursive: true });
  const data = await openDataDir(join(root, 'data'), { pid: process.pid });
  const failures: unknown[] = [];
  const deps: OrchestratorDeps = {
    store: data.store,
    clock: systemClock,
    ids: createIds(systemClock),
    timers: systemTimers,
    dataDir: data.path,
    queueLimit: 100,
    host: hostOf(engine, root, model, options.env ?? {}),
  };
  const orchestrator = await Orchestrator.open(deps, { slots: 2, recovery: { queued: 'fail' }, onFailure: (_run, error) => failures.push(error) });
  await orchestrator.recovered();
  const close = async (): Promise<void> => {
    await orchestrator.close();
    await data.close();
  };
  const ending = { close };
  endings.push(() => ending.close());
  const bench: RealBench = {
    engine, root, cwd, model, modelName: MODELS[engine], data, deps, orchestrator, failures, close,
    play: async (prompt, rest = {}) => {
      const { run_id: runId } = await orchestrator.create({ engine, prompt, model: MODELS[engine], cwd, permission: 'full', ...rest });
      return bench.settled(runId);
    },
    settled: async (runId) => {
      await orchestrator.settled(runId);
      expect(failures).toEqual([]);
      const run = await expectSound(bench, runId);
      await expectVerified(data, run);
      return run;
    },
    reply: async (runId, response) => {
      const pending = await data.store.loadPending(runId);
      await orchestrator.reply(runId, { interaction_id: pending?.interaction_id ?? '', response });
      return bench.settled(runId);
    },
    reopen: async () => {
      await close();
      ending.close = async () => {};
      return open(engine, root, model, options);
    },
    events: async (runId) => (await data.store.readJournal(runId, 'rasp', { limit: 1_000_000 })).map((line) => JSON.parse(line) as RaspEvent),
  };
  return bench;
}

function hostOf(engine: RealEngine, root: string, model: ModelServer, more: NonNullable<BenchOptions['env']>) {
  const home = join(root, 'user');
  const { files, env } = OFFLINE[engine](home, model.url, undefined);
  for (const [path, text] of Object.entries(files)) {
    const [within, own] = USER_PLACES.find(([prefix]) => path.startsWith(prefix)) ?? ['', ''];
    const file = join(home, own + path.slice(within.length));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  const tmp = join(root, 'tmp');
  mkdirSync(tmp, { recursive: true });
  // Nothing of this machine's own environment, and nothing that names a home: Parley gives each run one.
  const own = Object.fromEntries(Object.entries(env).filter(([name]) => !name.endsWith('HOME')));
  const user = { home, env: { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, LANG: 'C.UTF-8', HOME: home, TMPDIR: tmp, ...own, ...more } };
  const program = ENGINE_PROGRAMS[engine];
  const host = createEngineHost({ user, node: process.execPath, programs: '', platform: `${process.platform}-${process.arch}`, askTool: [process.execPath, ENTRY, 'mcp-ask'] }, { ...DEFAULT_SETTINGS, env_passthrough: ['SCRIPTED_API_KEY'] });
  return { ...host, findProgram: async () => program };
}

async function expectVerified(data: DataDir, run: RunRecord): Promise<void> {
  const checks = await verifyRun(data.store, data.path, run);
  expect(checks.filter(({ ok }) => !ok)).toEqual([]);
}
