// sessions.sticky: a run of an engine that cannot resume waits in its process, and only there. A stand-in that cannot
// resume runs it; with the setting off, nothing of this applies.
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createEngineRuntime } from '../../../src/machine/create-engine-runtime.js';
import { DEFAULT_SETTINGS } from '../../../src/settings/settings.js';
import { startResident } from '../../../src/app-server/start-resident.js';
import { systemClock } from '../../../src/kernel/clock.js';
import type { EngineRuntime } from '../../../src/machine/engine-runtime.js';
import { viewProfile, viewRun } from '../../../src/journal/run-view.js';
import { findEngine } from '../../../src/engines/registry.js';
import { systemTimers } from '../../../src/process/timers.js';
import type { RunRecord } from '../../../src/store/store.js';
import { alterStore } from '../../support/altered-store.js';
import { createRoot, expectSound, processesOf } from '../../support/orchestrated.js';
import { dataOf, ENGINE, openResidentBench, type ResidentBench } from '../../support/resident-bench.js';
import { SimulatedTime } from '../../support/simulated-timers.js';

const BIN = new URL('../../stand-ins/bin/codex-app-server-stand-in', import.meta.url).pathname;
const ASK = '[[approve echo once]] [[done 1]]';

const opened: ResidentBench[] = [];
afterEach(async () => {
  for (const bench of opened.splice(0)) await bench.close();
});

// As `parley serve` finds it: from the help of the program itself.
async function openSticky(
  kind: 'resumes' | 'cannot resume',
  {
    startResident: start,
    ...changes
  }: Parameters<typeof openResidentBench>[0] & Pick<EngineRuntime, 'startResident'> = {},
): Promise<ResidentBench> {
  const env: Record<string, string> = kind === 'resumes' ? {} : { STAND_IN_RESUME: 'no' };
  const probing = createEngineRuntime(
    {
      user: { home: '/', env: { PATH: process.env['PATH'], PARLEY_CODEX_APP_SERVER_BIN: BIN, ...env } },
      node: process.execPath,
      programs: '',
      platform: 'none',
      pid: process.pid,
      askTool: [],
    },
    { ...DEFAULT_SETTINGS, env_passthrough: Object.keys(env) },
    { clock: systemClock, timers: systemTimers },
  );
  const bench = await openResidentBench({
    sticky: true,
    env,
    settings: { residents: { parkAfterMs: 0, max: 0 } },
    ...changes,
    runtime: { ...probesOf(probing), ...(start ? { startResident: start } : {}) },
  });
  opened.push(bench);
  return bench;
}

function probesOf({ knownResume, probeResume }: EngineRuntime): Partial<EngineRuntime> {
  return { ...(knownResume ? { knownResume } : {}), ...(probeResume ? { probeResume } : {}) };
}

// A member unchanged, on its own object.
function bound<T extends object>(target: T, name: string | symbol): unknown {
  const member = Reflect.get(target, name, target) as unknown;
  return typeof member === 'function' ? (member.bind(target) as unknown) : member;
}

async function profileOf(bench: ResidentBench, run: RunRecord): Promise<ReturnType<typeof viewProfile>> {
  return viewProfile(
    (await bench.data.store.loadRun(run.run_id)) as RunRecord,
    await bench.data.store.loadPendingInteraction(run.run_id),
  );
}

async function viewOf(bench: ResidentBench, run: RunRecord): Promise<ReturnType<typeof viewRun>> {
  return viewRun(
    (await bench.data.store.loadRun(run.run_id)) as RunRecord,
    await bench.data.store.loadPendingInteraction(run.run_id),
    Date.now(),
  );
}

async function failed(bench: ResidentBench, run: RunRecord): Promise<RunRecord> {
  await vi.waitFor(async () => expect((await bench.data.store.loadRun(run.run_id))?.status).toBe('failed'), {
    timeout: 20_000,
  });
  return expectSound(bench, run.run_id);
}

test('where the probe passes, the run is marked resumable, and continues in another process', async () => {
  const bench = await openSticky('resumes');
  const run = await bench.play(ASK);
  expect(dataOf(await bench.events(run), 'lifecycle.run.created')).toMatchObject([
    { interactive_profile: { kind: 'resumable' } },
  ]);
  expect(await profileOf(bench, run)).toEqual({ interactive_profile: { kind: 'resumable' }, wait_deadline_at: null });
  await vi.waitFor(() => expect(processesOf(run.run_id)).toEqual([]), { timeout: 20_000 });
  expect((await bench.reply(run, { decision: 'approve' })).status).toBe('succeeded');
  expect(await bench.pids(run)).toHaveLength(2);
});

test('where the probe fails, the run is marked sticky_process, and is as interactive as any', async () => {
  const bench = await openSticky('cannot resume');
  const run = await bench.play('[[say Hello.]]');
  expect(run.status).toBe('waiting_user');
  expect(dataOf(await bench.events(run), 'lifecycle.run.created')).toMatchObject([
    { interactive_profile: { kind: 'sticky_process' } },
  ]);
  expect(await bench.data.store.loadHandle(run.request_id)).toMatchObject({ handle_type: 'process' });
  expect((await bench.reply(run, 'Go on. [[done 2]]')).result).toBe(2);
});

test('it waits in its process, which no limit of others ends, until asked_at and the session timeout', async () => {
  const bench = await openSticky('cannot resume');
  const run = await bench.play(ASK);
  const pids = processesOf(run.run_id);
  expect(pids.length).toBeGreaterThan(0);
  const pending = await bench.pending(run);
  expect(pending.due_at - pending.asked_at).toBe(1_200_000);
  expect(await profileOf(bench, run)).toEqual({
    interactive_profile: { kind: 'sticky_process' },
    wait_deadline_at: new Date(pending.due_at).toISOString(),
  });
  // Others come and go; this one stays.
  const other = await bench.play(ASK);
  await bench.orchestrator.cancel(other.run_id);
  expect(processesOf(run.run_id)).toEqual(pids);
});

test('an answer in time reaches that very process', async () => {
  const bench = await openSticky('cannot resume');
  const run = await bench.play(ASK);
  const [pid] = await bench.pids(run);
  expect(processesOf(run.run_id)).toContain(pid);
  expect((await bench.reply(run, { decision: 'approve' })).status).toBe('succeeded');
  expect(await bench.pids(run)).toEqual([pid]);
  expect(bench.commands()).toHaveLength(1);
});

test('at the deadline its process is ended and the run has failed with INTERACTION_WAIT_TIMEOUT', async () => {
  const time = new SimulatedTime();
  const bench = await openSticky('cannot resume', { clock: time.clock, timers: time.createTimers() });
  const run = await bench.play(ASK);
  expect(processesOf(run.run_id)).not.toEqual([]);
  time.advance(1_199_000);
  expect((await bench.data.store.loadRun(run.run_id))?.status).toBe('waiting_user');
  time.advance(2000);
  const over = await failed(bench, run);
  expect(over.error).toMatchObject({ code: 'INTERACTION_WAIT_TIMEOUT', details: { unanswered: { kind: 'approval' } } });
  expect(dataOf(await bench.events(run), 'lifecycle.state.changed').at(-1)).toMatchObject({
    from: 'waiting_user',
    to: 'failed',
    trigger: 'turn.failed',
  });
  expect(bench.commands()).toEqual([]);
  await expect(
    bench.orchestrator.reply(run.run_id, {
      interaction_id: (await bench.data.store.loadLatestInteraction(run.run_id))?.interaction_id ?? '',
      response: { decision: 'approve' },
    }),
  ).rejects.toMatchObject({ code: 'RUN_NOT_WAITING' });
});

test('where nobody has to answer, the policy decides at the deadline, and the process gets its answer', async () => {
  const time = new SimulatedTime();
  const bench = await openSticky('cannot resume', { clock: time.clock, timers: time.createTimers() });
  const run = await bench.play('[[ask Which? | red | blue]] [[done 1]]', {
    runtime_options: { interactive_require_user_reply: false },
  });
  const [pid] = await bench.pids(run);
  time.advance(1_201_000);
  await vi.waitFor(async () => expect((await bench.data.store.loadRun(run.run_id))?.status).toBe('succeeded'), {
    timeout: 20_000,
  });
  await bench.waitUntilIdle(run);
  expect(await bench.pids(run)).toEqual([pid]);
});

test('a process that exits while its run waits fails it with INTERACTION_PROCESS_LOST', async () => {
  const bench = await openSticky('cannot resume');
  const run = await bench.play(ASK);
  for (const pid of processesOf(run.run_id)) process.kill(pid, 'SIGKILL');
  const over = await failed(bench, run);
  expect(over.error).toMatchObject({ code: 'INTERACTION_PROCESS_LOST', details: { unanswered: { kind: 'approval' } } });
});

test('a run that loses its process during a shutdown has its last event in its files', async () => {
  let ending: Promise<unknown> | null = null;
  let isLost = false;
  const bench: ResidentBench = await openSticky('cannot resume', {
    store: (store) =>
      alterStore(store, {
        loadPendingInteraction: async (id) => {
          if (isLost) ending ??= bench.orchestrator.close();
          return store.loadPendingInteraction(id);
        },
      }),
  });
  const run = await bench.play(ASK);
  isLost = true;
  for (const pid of processesOf(run.run_id)) process.kill(pid, 'SIGKILL');
  await vi.waitFor(() => expect(ending).not.toBeNull(), { timeout: 20_000 });
  await ending;
  expect((await failed(bench, run)).error?.code).toBe('INTERACTION_PROCESS_LOST');
});

test('one that is found dead by the turn of its answer is lost too, and no other is started', async () => {
  let isDead = false;
  const bench = await openSticky('cannot resume', {
    startResident: async (_engine, start) => {
      const resident = await startResident(start, {
        user: { home: start.folder, env: { PATH: process.env['PATH'] } },
        platform: 'none',
        pid: process.pid,
        clock: systemClock,
        timers: systemTimers,
      });
      return new Proxy(resident, {
        get: (target, name) => (name === 'isAlive' && isDead ? false : bound(target, name)),
      });
    },
  });
  const run = await bench.play(ASK);
  isDead = true;
  expect(await bench.reply(run, { decision: 'approve' })).toMatchObject({
    status: 'failed',
    error: { code: 'INTERACTION_PROCESS_LOST' },
  });
  expect(await bench.pids(run)).toHaveLength(1);
  expect(bench.commands()).toEqual([]);
});

test('a session lost with its process cannot be continued; a retry starts from the beginning', async () => {
  const bench = await openSticky('cannot resume');
  const run = await bench.play(ASK);
  for (const pid of processesOf(run.run_id)) process.kill(pid, 'SIGKILL');
  await failed(bench, run);
  await expect(bench.orchestrator.continueFrom(run.run_id, { prompt: 'Go on.' })).rejects.toMatchObject({
    code: 'NO_SESSION',
  });
  const again = await bench.orchestrator.retry(run.run_id);
  expect((await bench.waitUntilIdle(again)).status).toBe('waiting_user');
  expect((await bench.pending(again)).question).toMatchObject({ kind: 'approval' });
});

test('one that is canceled while it waits is canceled, not lost', async () => {
  const bench = await openSticky('cannot resume');
  const run = await bench.play(ASK);
  expect((await bench.orchestrator.cancel(run.run_id)).status).toBe('canceled');
  await bench.waitUntilIdle(run);
});

test('after a restart the process has exited, and the run failed with SESSION_RESUME_FAILED', async () => {
  const root = createRoot();
  const first = await openSticky('cannot resume', { root });
  const run = await first.play(ASK);
  opened.splice(0);
  await first.close();
  expect(processesOf(run.run_id)).toEqual([]);
  const second = await openSticky('cannot resume', { root });
  const over = await expectSound(second, run.run_id);
  expect(over).toMatchObject({ status: 'failed', error: { code: 'SESSION_RESUME_FAILED' } });
});

describe('with the setting off', () => {
  test('nothing of it is there, and a run that would have to wait fails', async () => {
    const bench = await openResidentBench({ env: { STAND_IN_RESUME: 'no' } });
    opened.push(bench);
    const run = await bench.play(ASK);
    expect(run).toMatchObject({ status: 'failed', error: { code: 'SESSION_RESUME_FAILED' } });
    expect(JSON.stringify([await viewOf(bench, run), await bench.events(run)])).not.toMatch(
      /interactive_profile|sticky|wait_deadline/,
    );
  });

  test('an engine that cannot stay is never marked sticky, on or off', async () => {
    const bench = await openResidentBench({
      sticky: true,
      runtime: { knownResume: () => ({ resumes: false, problem: 'it said so' }) },
    });
    opened.push(bench);
    const run = await bench.orchestrator.create({
      engine: 'codex',
      prompt: '[[say Hello.]]',
      execution_mode: 'interactive',
    });
    await bench.orchestrator.waitUntilIdle(run.run_id);
    // No kind is claimed, and the doubt is recorded.
    expect(await profileOf(bench, run)).toEqual({ interactive_profile: null, wait_deadline_at: null });
    expect(dataOf(await bench.events(run), 'diagnostic.parser.warning')).toContainEqual({
      code: 'RESUME_NOT_PROVED',
      message: expect.stringContaining('it said so'),
    });
  });
});

function runtimeOf(env: Record<string, string>): EngineRuntime {
  return createEngineRuntime(
    {
      user: { home: '/', env: { PATH: process.env['PATH'], PARLEY_CODEX_APP_SERVER_BIN: BIN, ...env } },
      node: process.execPath,
      programs: '',
      platform: 'none',
      pid: process.pid,
      askTool: [],
    },
    { ...DEFAULT_SETTINGS, env_passthrough: Object.keys(env) },
    { clock: systemClock, timers: systemTimers },
  );
}

test('whether an engine can resume is asked of the program itself, once', async () => {
  expect(await runtimeOf({}).probeResume?.(findEngine(ENGINE))).toMatchObject({ resumes: true });
  expect(await runtimeOf({ STAND_IN_RESUME: 'no' }).probeResume?.(findEngine(ENGINE))).toMatchObject({
    resumes: false,
    problem: expect.stringContaining('does not show how'),
  });
  expect(
    await runtimeOf({ PARLEY_CODEX_APP_SERVER_BIN: join('/', 'nowhere') }).probeResume?.(findEngine(ENGINE)),
  ).toBeNull();
});
