// An orchestrator on a real store, real processes and the stand-in engines, in a folder of its own.
import { singleHost } from '../../src/ownership/single-host.js';
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { findEngine } from '../../src/engines/registry.js';
import { projectConversation } from '../../src/fcmp/fold.js';
import { copySession } from '../../src/machine/sessions/copy-session.js';
import { startResident } from '../../src/app-server/start-resident.js';
import { systemClock, type Clock } from '../../src/kernel/clock.js';
import { createIds } from '../../src/kernel/ids.js';
import type { OrchestratorDeps } from '../../src/journal/deps.js';
import type { EngineRuntime } from '../../src/machine/engine-runtime.js';
import { Orchestrator } from '../../src/orchestrator/orchestrator.js';
import type { OrchestratorSettings } from '../../src/orchestrator/orchestrator-settings.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { verifyRun } from '../../src/audit/verify-run.js';
import { systemTimers, type Timers } from '../../src/process/timers.js';
import { listMarked } from '../../src/process/process-table.js';
import { measureCover } from '../../src/rasp/cover.js';
import type { RaspEvent } from '../../src/rasp/event.js';
import { explainRasp } from '../../src/rasp/validate.js';
import { waitPolicyOf } from '../../src/run/waiting/wait-policy.js';
import { openDataDir, type DataDir } from '../../src/store/sqlite/data-dir.js';
import type { RunRecord, Store } from '../../src/store/store.js';
import { afterEachFile } from './hooks.js';
import type { LoggedStart } from './stand-in.js';

const BIN = new URL('../stand-ins/bin/', import.meta.url).pathname;

export interface Bench {
  readonly data: DataDir;
  readonly deps: OrchestratorDeps;
  readonly orchestrator: Orchestrator;
  readonly failures: unknown[];
  close(): Promise<void>;
}

const roots: string[] = [];
afterEachFile(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true });
});

export function createRoot(): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'parley-runs-')));
  roots.push(root);
  return root;
}

export function startsIn(root: string): LoggedStart[] {
  try {
    return readFileSync(join(root, 'starts.jsonl'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as LoggedStart);
  } catch {
    return [];
  }
}

let sessions = 0;

export function standInRuntime(root: string): EngineRuntime {
  return {
    findProgram: async (engine) => [join(BIN, engine.resident ? `${engine.name}-stand-in` : engine.name)],
    startResident: (_engine, start) =>
      startResident(start, {
        user: { home: join(root, 'user'), env: { PATH: process.env['PATH'] } },
        platform: 'none',
        pid: process.pid,
        clock: systemClock,
        timers: systemTimers,
      }),
    environment: (_engine, run) => ({
      PATH: process.env['PATH'] ?? '',
      HOME: run.spec.home ?? root,
      STAND_IN_LOG: join(root, 'starts.jsonl'),
    }),
    // Each of them keeps a session in a file that is named after it; Gemini's by its first eight characters.
    hasSession: async ({ handle_value: id, home }) =>
      home !== null &&
      readdirSync(home, { recursive: true, encoding: 'utf8' }).some(
        (name) => name.includes(id) || name.includes(id.slice(0, 8)),
      ),
    copySession: async (handle, home) => copySession(handle, home),
    newSessionId: () =>
      `${String((process.pid * 1000 + (sessions += 1)) % 100_000_000).padStart(8, '0')}-0000-4000-8000-000000000001`,
  };
}

// `data.store` is the real store; `store` alters what the orchestrator gets.
export async function openBench(
  root: string,
  changes: {
    deps?: Partial<OrchestratorDeps>;
    store?: (store: Store) => Store;
    clock?: Clock;
    timers?: Timers;
    runtime?: Partial<EngineRuntime>;
    settings?: Partial<OrchestratorSettings>;
    queueLimit?: number;
    sticky?: boolean;
  } = {},
): Promise<Bench> {
  const data = await openDataDir(join(root, 'data'), { pid: process.pid });
  const clock = changes.clock ?? systemClock;
  const failures: unknown[] = [];
  const store = changes.store?.(data.store) ?? data.store;
  const deps: OrchestratorDeps = {
    store,
    ...singleHost(store),
    clock,
    ids: createIds(clock),
    timers: changes.timers ?? systemTimers,
    dataDir: data.path,
    queueLimit: () => changes.queueLimit ?? 1000,
    runtime: { ...standInRuntime(root), ...changes.runtime },
    mayNeedProcess: changes.sticky ?? false,
    ...changes.deps,
  };
  const orchestrator = await Orchestrator.open(deps, {
    slots: 4,
    recovery: { queued: 'fail' },
    onFailure: (_run, error) => failures.push(error),
    ...changes.settings,
  });
  await orchestrator.recovered();
  return {
    data,
    deps,
    orchestrator,
    failures,
    close: async () => {
      await orchestrator.close();
      await data.close();
      expect(failures).toEqual([]);
    },
  };
}

export async function journalOf(bench: Bench, runId: string): Promise<{ rasp: RaspEvent[]; fcmp: string[] }> {
  const rasp = await bench.data.store.readJournal(runId, 'rasp', { limit: 1_000_000 });
  return {
    rasp: rasp.map((line) => JSON.parse(line) as RaspEvent),
    fcmp: await bench.data.store.readJournal(runId, 'fcmp', { limit: 1_000_000 }),
  };
}

// The invariants of every run. `findings` is what verify must report, if the test itself has changed something.
export async function expectSound(bench: Bench, runId: string, findings: readonly string[] = []): Promise<RunRecord> {
  const run = (await bench.data.store.loadRun(runId)) as RunRecord;
  const { rasp, fcmp } = await journalOf(bench, runId);
  expect(rasp.map((event) => event.seq)).toEqual(rasp.map((_, index) => index + 1));
  expect(run.heads).toMatchObject({ rasp_seq: rasp.length, fcmp_seq: fcmp.length });
  for (const event of rasp) expect(explainRasp(event), JSON.stringify(event)).toBeNull();
  expect(rasp.map((event) => event.ts)).toEqual(rasp.map((event) => event.ts).toSorted());
  expect(fcmp).toEqual(projectConversation(runId, rasp));
  let state = 'queued';
  for (const { event, data } of rasp) {
    if (event.type !== 'lifecycle.state.changed') continue;
    expect(data.from).toBe(state);
    expect(
      waitPolicyOf(run.spec).chart.some(
        (edge) => edge.from === data.from && edge.on === data.trigger && edge.to === data.to,
      ),
    ).toBe(true);
    state = data.to as string;
  }
  expect(state).toBe(run.status);
  // The same states in the conversation; only a start that found the run waiting is not shown there.
  const walked = rasp
    .filter(
      ({ event, data }) => event.type === 'lifecycle.state.changed' && data['trigger'] !== 'restart.preserve_waiting',
    )
    .map(({ data }) => [data['from'], data['trigger'], data['to']]);
  const shown = fcmp
    .map((line) => JSON.parse(line) as { type: string; data: Record<string, unknown> })
    .filter(({ type }) => type === 'conversation.state.changed')
    .map(({ data }) => [data['from'], data['trigger'], data['to']]);
  expect(shown).toEqual(walked);
  expect(await bench.data.store.recomputeDigest(runId)).toBe(run.heads.digest);
  if (['succeeded', 'failed', 'canceled'].includes(run.status))
    expect(rasp.at(-1)?.event.type).toBe('lifecycle.state.changed');
  if (run.status === 'waiting_user') {
    expect(await bench.data.store.loadPendingInteraction(runId)).not.toBeNull();
    expect(await bench.data.store.loadHandle(run.request_id)).not.toBeNull();
  }
  const { resident } = findEngine(run.spec.engine);
  expect(
    (await verifyRun(bench.data.store, bench.data.path, run))
      .filter(({ ok }) => !ok)
      .map(({ name, finding }) => `${name}: ${finding}`),
  ).toEqual(findings);
  if (!resident) expectCover(bench, run, rasp);
  // Only a resident engine keeps its process while its run waits.
  if (!resident || run.status !== 'waiting_user') expect(processesOf(runId)).toEqual([]);
  return run;
}

export function processesOf(runId: string): number[] {
  return listMarked()
    .filter(({ mark }) => mark?.startsWith(`${runId}/`))
    .map(({ pid }) => pid);
}

function expectCover(bench: Bench, run: RunRecord, rasp: readonly RaspEvent[]): void {
  const folder = runFolder(bench.data.path, run.run_id);
  for (let attempt = 1; attempt <= run.attempt_number; attempt += 1) {
    for (const stream of ['stdout', 'stderr'] as const) {
      const size = sizeOf(folder.attempt(attempt).logs[stream]);
      expect(measureCover(rasp, stream, attempt), `${stream} of attempt ${attempt}`).toEqual({
        covered: size,
        holes: 0,
        overlaps: 0,
      });
    }
  }
}

function sizeOf(path: string): number {
  try {
    return readFileSync(path).length;
  } catch {
    return 0;
  }
}
