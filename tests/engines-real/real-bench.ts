// Parley on a real CLI, in this process: an orchestrator with the engine runtime of the command line, on a simulated
// user's machine.
import { singleHost } from '../../src/ownership/single-host.js';
import { fileURLToPath } from 'node:url';
import { afterEach, expect } from 'vitest';
import { startResident } from '../../src/app-server/start-resident.js';
import { createEngineRuntime } from '../../src/machine/create-engine-runtime.js';
import { DEFAULT_SETTINGS } from '../../src/settings/settings.js';
import { systemClock } from '../../src/kernel/clock.js';
import { createIds } from '../../src/kernel/ids.js';
import type { Json } from '../../src/kernel/json.js';
import type { CreateRunRequest } from '../../src/commands/create-request.js';
import type { OrchestratorDeps } from '../../src/journal/deps.js';
import { Orchestrator } from '../../src/orchestrator/orchestrator.js';
import type { OrchestratorSettings } from '../../src/orchestrator/orchestrator-settings.js';
import { systemTimers, type Timers } from '../../src/process/timers.js';
import type { RaspEvent } from '../../src/rasp/event.js';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import type { InteractionRecord, RunRecord } from '../../src/store/store.js';
import { expectSound, type Bench } from '../support/orchestrated.js';
import type { ModelServer } from '../models/model-server.js';
import type { RealEngine } from '../models/offline-config.js';
import { meetPerson, MODEL_NAMES, PERSON_SETTINGS, type Person } from './real-person.js';

const ENTRY = fileURLToPath(new URL('../../bin/parley.js', import.meta.url));

export const REAL_ENGINES = ['claude', 'codex', 'gemini', 'opencode'] as const satisfies readonly RealEngine[];

export interface RealBench extends Bench {
  readonly engine: RealEngine;
  readonly root: string;
  readonly cwd: string;
  readonly model: ModelServer;
  readonly modelName: string;
  create(prompt: string, rest?: Partial<CreateRunRequest>): Promise<RunRecord>;
  play(prompt: string, rest?: Partial<CreateRunRequest>): Promise<RunRecord>;
  // `findings`: what verify must report, if the test itself has changed something.
  waitUntilIdle(runId: string, findings?: readonly string[]): Promise<RunRecord>;
  pending(runId: string): Promise<InteractionRecord>;
  reply(runId: string, response: Json, findings?: readonly string[]): Promise<RunRecord>;
  events(runId: string): Promise<RaspEvent[]>;
}

const endings: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end();
});

export interface BenchOptions {
  // Special characters in the name of the folder.
  readonly oddly?: string;
  // Additional settings of this user; undefined removes one.
  readonly env?: (root: string) => Readonly<Record<string, string | undefined>>;
  // The engine of the runs, if another engine uses the same program.
  readonly runsOn?: 'codex-app-server';
  // The environment of the orchestrator; the engine has its own.
  readonly timers?: Timers;
  readonly settings?: Pick<Partial<OrchestratorSettings>, 'slots' | 'residents'>;
  // Whether sessions.sticky is on; the result of the probe can be replaced.
  readonly sticky?: { readonly resumes?: boolean };
}

export async function openRealBench(
  engine: RealEngine,
  { oddly, env = () => ({}), runsOn, timers = systemTimers, settings = {}, sticky }: BenchOptions = {},
): Promise<RealBench> {
  const person = await meetPerson(engine, (end) => endings.push(end), oddly);
  const { root, cwd, model } = person;
  const data = await openDataDir(person.data, { pid: process.pid });
  const failures: unknown[] = [];
  const deps: OrchestratorDeps = {
    store: data.store,
    clock: systemClock,
    ids: createIds(systemClock),
    timers,
    dataDir: data.path,
    queueLimit: () => 100,
    ...singleHost(data.store),
    runtime: runtimeOf({ ...person, env: { ...person.env, ...env(root) } }),
    mayNeedProcess: sticky !== undefined,
  };
  if (sticky?.resumes !== undefined)
    Object.assign(deps.runtime, { knownResume: () => ({ resumes: sticky.resumes, problem: null }) });
  const orchestrator = await Orchestrator.open(deps, {
    slots: 2,
    recovery: { queued: 'fail' },
    onFailure: (_run, error) => failures.push(error),
    ...settings,
  });
  await orchestrator.recovered();
  const close = async (): Promise<void> => {
    await orchestrator.close();
    await data.close();
  };
  endings.push(close);
  const bench: RealBench = {
    engine,
    root,
    cwd,
    model,
    modelName: MODEL_NAMES[engine],
    data,
    deps,
    orchestrator,
    failures,
    close,
    create: (prompt, rest = {}) =>
      orchestrator.create({
        engine: runsOn ?? engine,
        prompt,
        model: MODEL_NAMES[engine],
        cwd,
        permission: 'full',
        ...rest,
      }),
    play: async (prompt, rest) => bench.waitUntilIdle((await bench.create(prompt, rest)).run_id),
    waitUntilIdle: async (runId, findings) => {
      await orchestrator.waitUntilIdle(runId);
      expect(failures).toEqual([]);
      return expectSound(bench, runId, findings);
    },
    pending: async (runId) => {
      const pending = await data.store.loadPendingInteraction(runId);
      if (!pending) throw new Error(`${runId} asks nothing`);
      return pending;
    },
    reply: async (runId, response, findings) => {
      const { interaction_id: id } = await bench.pending(runId);
      await orchestrator.reply(runId, { interaction_id: id, response });
      return bench.waitUntilIdle(runId, findings);
    },
    events: async (runId) =>
      (await data.store.readJournal(runId, 'rasp', { limit: 1_000_000 })).map((line) => JSON.parse(line) as RaspEvent),
  };
  return bench;
}

function runtimeOf({ home, env }: Person) {
  const machine = {
    user: { home, env },
    node: process.execPath,
    programs: '',
    platform: `${process.platform}-${process.arch}`,
    pid: process.pid,
    askTool: [process.execPath, ENTRY, 'mcp-ask'],
  };
  const [clock, timers] = [systemClock, systemTimers];
  return createEngineRuntime(
    machine,
    { ...DEFAULT_SETTINGS, ...PERSON_SETTINGS },
    { clock, timers, startResident: (_engine, start) => startResident(start, { ...machine, clock, timers }) },
  );
}
