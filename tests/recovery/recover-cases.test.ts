// Recovery of runs whose host stopped, on a real SQLite store: which runs it ends, how, and which it leaves alone.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createRun } from '../../src/commands/create-run.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { systemClock } from '../../src/kernel/clock.js';
import { createIds } from '../../src/kernel/ids.js';
import { DamagedDataError } from '../../src/kernel/stored-json.js';
import { MARK_NAME } from '../../src/process/process-table.js';
import { systemTimers } from '../../src/process/timers.js';
import type { RaspData } from '../../src/rasp/event.js';
import {
  cancelOrphan,
  endOldEngines,
  recoverOrphans,
  recoverWaitingRuns,
  type RecoverySettings,
  type RecoveryWork,
} from '../../src/recovery/recover.js';
import type { Actor, RunRecord } from '../../src/store/store.js';
import { runError } from '../../src/run/run-error.js';
import { TurnWriter } from '../../src/turn/turn-writer.js';
import { alterStore } from '../support/altered-store.js';
import { CommandBench, T0 } from '../support/command-bench.js';

const ANN: Actor = { kind: 'token', name: 'ann' };
const SESSION = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';

let bench: CommandBench;
let failures: [runId: string, error: unknown][];
const children: ChildProcess[] = [];

beforeEach(async () => {
  bench = await CommandBench.open();
  failures = [];
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await bench.close();
});

interface Changes {
  readonly settings?: RecoverySettings;
  readonly store?: Parameters<typeof alterStore>[1];
  readonly ownership?: Partial<RecoveryWork['deps']['ownership']>;
  readonly files?: Partial<RecoveryWork['deps']['files']>;
  readonly work?: Partial<RecoveryWork>;
}

function workOf({ settings = { queued: 'fail' }, store = {}, ownership, files, work }: Changes = {}): RecoveryWork {
  const { deps } = bench;
  return {
    deps: {
      ...deps,
      timers: systemTimers,
      store: alterStore(deps.store, store),
      ownership: { ...deps.ownership, ...ownership },
      files: { ...deps.files, ...files },
    },
    settings,
    journalFiles: { write: async () => {} },
    isRunHere: () => false,
    recovering: new Set(),
    cancels: new Map(),
    exclusively: (_runId, piece) => piece(),
    signal: new AbortController().signal,
    onFailure: (runId, error) => void failures.push([runId, error]),
    ...work,
  };
}

const refuseAppend = async () => ({ committed: false, reason: 'epoch' }) as never;

const load = async (runId: string): Promise<RunRecord> => (await bench.store.loadRun(runId)) as RunRecord;

// The row has changed at most in its count of crashes.
async function expectUntouched(run: RunRecord): Promise<void> {
  const { crashes: _crashes, ...rest } = run;
  expect(await load(run.run_id)).toMatchObject(rest);
}

async function loadEnd(runId: string): Promise<RaspData['lifecycle.state.changed']> {
  return (await bench.eventsOf(runId)).at(-1)?.data as unknown as RaspData['lifecycle.state.changed'];
}

async function requestCancel(run: RunRecord, actor: Actor | null = ANN): Promise<RunRecord> {
  const writer = new TurnWriter(bench.deps, run, () => {});
  await writer.recordCancel({ at: T0, actor });
  return writer.run;
}

// A directory in the place of the log: reading it is refused.
function breakLogs({ run_id: runId }: RunRecord): void {
  mkdirSync(runFolder(bench.deps.dataDir, runId).attempt(1).logs.stdout, { recursive: true });
}

function writeLog({ run_id: runId }: RunRecord, ...lines: readonly object[]): void {
  const { path, logs } = runFolder(bench.deps.dataDir, runId).attempt(1);
  mkdirSync(path, { recursive: true });
  writeFileSync(logs.stdout, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}

// Other tests use counting ids in the same process table, so runs with processes get random ones.
function createUnique(): Promise<RunRecord> {
  const deps = { ...bench.deps, ids: createIds(systemClock) };
  return createRun(deps, { engine: 'codex', prompt: 'Build it.', execution_mode: 'interactive' }, {});
}

async function startMarked(mark: string): Promise<ChildProcess> {
  const child = spawn('sleep', ['60'], { env: { ...process.env, [MARK_NAME]: mark }, stdio: 'ignore' });
  children.push(child);
  await new Promise((resolve) => child.once('spawn', resolve));
  return child;
}

const isAlive = (child: ChildProcess): boolean => child.exitCode === null && child.signalCode === null;
const expectEnded = (child: ChildProcess): Promise<void> =>
  expect.poll(() => child.signalCode, { timeout: 5000 }).toBe('SIGTERM');

describe('engines of an earlier process', () => {
  test('end if their run is stored here, in whatever state the run is', async () => {
    const run = await createUnique();
    const child = await startMarked(`${run.run_id}/1`);
    await endOldEngines(workOf().deps);
    await expectEnded(child);
  });

  test('stay if their run is unknown or runs on another host', async () => {
    const run = await createUnique();
    const here = await createUnique();
    const unknown = await startMarked('run_unknown/1');
    const elsewhere = await startMarked(`${run.run_id}/1`);
    const old = await startMarked(`${here.run_id}/2`);
    const isRunElsewhere = async (runId: string) => runId === run.run_id;
    await endOldEngines(workOf({ ownership: { isRunElsewhere } }).deps);
    await expectEnded(old);
    expect([isAlive(unknown), isAlive(elsewhere)]).toEqual([true, true]);
  });
});

describe('a running orphan', () => {
  test('fails, with the reason and the way to repeat it', async () => {
    const run = await bench.running();
    await recoverOrphans(workOf());
    expect(await load(run.run_id)).toMatchObject({
      status: 'failed',
      error: runError('ORCHESTRATOR_RESTART_INTERRUPTED.running'),
    });
    expect(await loadEnd(run.run_id)).toMatchObject({ trigger: 'restart.reconcile_failed' });
    expect(failures).toEqual([]);
  });

  test('keeps the session that its log names', async () => {
    const run = await bench.running();
    writeLog(run, { type: 'thread.started', thread_id: SESSION });
    await recoverOrphans(workOf());
    expect(await bench.store.loadHandle(run.request_id)).toMatchObject({ handle_value: SESSION });
  });

  test('counts a crash of its host before it is ended', async () => {
    const { run_id: runId } = await bench.queued();
    await bench.store.markStarting(runId);
    await recoverOrphans(workOf({ settings: { queued: 'requeue' } }));
    expect(await load(runId)).toMatchObject({ status: 'queued', crashes: 1 });
  });

  test.each([ANN, null])('with a cancel request is canceled by the one who asked: %o', async (actor) => {
    const run = await requestCancel(await bench.running(), actor);
    await recoverOrphans(workOf());
    const { trigger, actor: recorded } = await loadEnd(run.run_id);
    expect([trigger, recorded]).toEqual(['run.canceled', actor ?? undefined]);
  });

  test('is ended without its logs if they cannot be read, and the error is reported', async () => {
    const run = await bench.running();
    breakLogs(run);
    await recoverOrphans(workOf());
    const { status, error } = await load(run.run_id);
    expect([status, error?.message]).toEqual(['failed', expect.stringContaining('could not be read from the logs')]);
    expect(failures).toEqual([[run.run_id, expect.any(Error)]]);
  });

  test.each([ANN, null])('with a cancel request is canceled also if its logs cannot be read: %o', async (actor) => {
    const run = await requestCancel(await bench.running(), actor);
    breakLogs(run);
    await recoverOrphans(workOf());
    const { trigger, actor: recorded } = await loadEnd(run.run_id);
    expect([trigger, recorded]).toEqual(['run.canceled', actor ?? undefined]);
    expect(failures).toHaveLength(1);
  });

  test('that began to wait while its logs could not be read still waits', async () => {
    const run = await bench.running();
    const readJournal = async () => {
      await bench.ask(run);
      throw new Error('the disk is gone');
    };
    await recoverOrphans(workOf({ store: { readJournal } }));
    expect(failures).toHaveLength(1);
    expect((await load(run.run_id)).status).toBe('waiting_user');
  });

  test('that another writer has changed is left to that writer, without a report', async () => {
    const run = await bench.running();
    writeLog(run, { type: 'thread.started', thread_id: SESSION });
    await recoverOrphans(workOf({ store: { append: refuseAppend } }));
    expect(failures).toEqual([]);
    await expectUntouched(run);
  });

  test('has its journal files completed before it ends; a failure of that is reported', async () => {
    const run = await bench.running();
    const seen: string[] = [];
    const write = async (runId: string) => {
      seen.push(`${runId} ${(await load(runId)).status}`);
      throw new Error('the disk is full');
    };
    await recoverOrphans(workOf({ work: { journalFiles: { write } as RecoveryWork['journalFiles'] } }));
    expect(seen).toEqual([`${run.run_id} running`]);
    expect((await load(run.run_id)).status).toBe('failed');
    expect(failures).toEqual([[run.run_id, new Error('the disk is full')]]);
  });

  test('is left alone if its turn runs in this process', async () => {
    const run = await bench.running();
    await recoverOrphans(workOf({ work: { isRunHere: () => true } }));
    await expectUntouched(run);
  });

  test.each([1, 2])('is left alone if its turn starts here after check %i', async (first) => {
    const run = await bench.running();
    let checks = 0;
    const takenOver: string[] = [];
    const takeOver = async (orphan: RunRecord) => {
      takenOver.push(orphan.run_id);
      return orphan;
    };
    const isRunHere = () => (checks += 1) > first;
    await recoverOrphans(workOf({ ownership: { takeOver }, work: { isRunHere } }));
    await expectUntouched(run);
    expect(takenOver).toHaveLength(first === 1 ? 0 : 1);
  });

  test('is left alone if the ownership refuses it', async () => {
    const run = await bench.running();
    await recoverOrphans(workOf({ ownership: { takeOver: async () => null } }));
    await expectUntouched(run);
    expect(failures).toEqual([]);
  });

  test('of another host has its engine ended on this machine', async () => {
    const run = await bench.apply(await createUnique(), { event: 'turn.started' });
    const child = await startMarked(`${run.run_id}/1`);
    const other = await startMarked(`${run.run_id}0/1`);
    // The store still has the old epoch, so the run itself is not ended.
    await recoverOrphans(
      workOf({ ownership: { takeOver: async (orphan) => ({ ...orphan, epoch: orphan.epoch + 1 }) } }),
    );
    await expectEnded(child);
    expect(isAlive(other)).toBe(true);
  });

  test('of this host has no engine to end: it ended when the host started', async () => {
    const run = await bench.apply(await createUnique(), { event: 'turn.started' });
    const child = await startMarked(`${run.run_id}/1`);
    await recoverOrphans(workOf());
    expect((await load(run.run_id)).status).toBe('failed');
    expect(isAlive(child)).toBe(true);
  });

  test('is recovered one piece of work at a time', async () => {
    const run = await bench.running();
    const order: string[] = [];
    const exclusively = async <T>(runId: string, piece: () => Promise<T>): Promise<T> => {
      order.push(runId, (await load(runId)).status);
      const result = await piece();
      order.push((await load(runId)).status);
      return result;
    };
    await recoverOrphans(workOf({ work: { exclusively } }));
    expect(order).toEqual([run.run_id, 'running', 'failed']);
  });
});

describe('a running orphan whose files are on another host', () => {
  const away = { isHere: async () => false };

  test('fails with where its output is, and its journal files are left alone', async () => {
    const run = await bench.running();
    const journalFiles = { write: () => Promise.reject(new Error('no files')) };
    await recoverOrphans(workOf({ files: away, work: { journalFiles } }));
    expect(await load(run.run_id)).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('in the logs on that host') as string },
    });
    expect(failures).toEqual([]);
    // No turn end: nothing has read the logs.
    expect((await bench.eventsOf(run.run_id)).map(({ event }) => event.type)).not.toContain('lifecycle.turn.ended');
  });

  test('is canceled by the one who asked', async () => {
    const run = await requestCancel(await bench.running());
    await recoverOrphans(workOf({ files: away }));
    expect(await loadEnd(run.run_id)).toMatchObject({ trigger: 'run.canceled', actor: ANN });
    expect((await loadEnd(run.run_id)).error).toBeUndefined();
  });
});

describe('a queued orphan', () => {
  test('fails, unless queued runs are kept', async () => {
    const { run_id: runId } = await bench.queued();
    await recoverOrphans(workOf({ settings: { queued: 'requeue' } }));
    expect((await load(runId)).status).toBe('queued');
    await recoverOrphans(workOf());
    expect(await load(runId)).toMatchObject({
      status: 'failed',
      error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED', message: expect.stringContaining('was queued') as string },
    });
  });

  test.each([
    { name: 'a retry stays queued', retryOf: 'run_0', running: 'retry', status: 'queued' },
    { name: 'a retry fails if interrupted runs are not repeated', retryOf: 'run_0', running: 'fail', status: 'failed' },
    { name: 'another run fails', retryOf: undefined, running: 'retry', status: 'failed' },
  ] as const)('while interrupted runs are repeated: $name', async ({ retryOf, running, status }) => {
    const { run_id: runId } = await bench.queued({}, retryOf ? { retryOf } : {});
    await recoverOrphans(workOf({ settings: { queued: 'fail', running } }));
    expect((await load(runId)).status).toBe(status);
  });

  test('that has been answered fails, even if it is a retry', async () => {
    const run = await bench.queued({}, { retryOf: 'run_0' });
    const loadRun = async (runId: string) => ({ ...(await load(runId)), attempt_number: 2 });
    await recoverOrphans(workOf({ settings: { queued: 'fail', running: 'retry' }, store: { loadRun } }));
    expect((await load(run.run_id)).status).toBe('failed');
  });
});

describe('a stranded run', () => {
  test.each([
    [true, 'SESSION_RESUME_FAILED', 'files of the run are on a host'],
    [false, 'ORCHESTRATOR_RESTART_INTERRUPTED', 'every host with the data directory'],
  ] as const)('fails and names the missing part; it has a site: %s', async (hasSite, code, words) => {
    const { run_id: runId } = await bench.queued();
    const limits: number[] = [];
    const listStranded = async (limit: number) => {
      limits.push(limit);
      return [{ run_id: runId, hasSite }];
    };
    await recoverOrphans(workOf({ settings: { queued: 'requeue' }, files: { listStranded } }));
    const { status, error } = await load(runId);
    expect([status, error?.code, error?.message]).toEqual(['failed', code, expect.stringContaining(words)]);
    expect(limits).toEqual([100]);
  });

  test('that is not queued any more is left alone', async () => {
    const { run } = await bench.waiting();
    const listStranded = async () => [{ run_id: run.run_id, hasSite: true }];
    await recoverOrphans(workOf({ files: { listStranded } }));
    await expectUntouched(run);
    expect(failures).toEqual([]);
  });
});

describe('recovery of many runs', () => {
  test('continues after a run that cannot be recovered, and reports it', async () => {
    const [running, queued, stranded] = [await bench.running(), await bench.queued(), await bench.queued()];
    const more = [await bench.running(), await bench.queued(), await bench.queued()];
    const broken = new Set([running, queued, stranded].map(({ run_id: id }) => id));
    const append: typeof bench.store.append = (change) => {
      if (broken.has(change.run_id)) throw new Error(change.run_id);
      return bench.store.append(change);
    };
    const listOrphans = async (state: string) =>
      ({ running: [running, more[0]], queued: [queued, more[1]], waiting_user: [] })[state]?.map(
        (run) => run?.run_id ?? '',
      ) ?? [];
    const listStranded = async () => [stranded, more[2]].map((run) => ({ run_id: run?.run_id ?? '', hasSite: true }));
    await recoverOrphans(workOf({ store: { append }, ownership: { listOrphans }, files: { listStranded } }));
    const order = [queued, stranded, running, running].map(({ run_id: id }) => id);
    expect(failures.map(([runId]) => runId)).toEqual(order);
    for (const run of more) expect((await load(run.run_id)).status).toBe('failed');
  });

  test('reports a damaged run by its id and recovers the others', async () => {
    const [damaged, other] = [await bench.running(), await bench.running()];
    await bench.damage(damaged.run_id);
    await recoverOrphans(workOf());
    expect(failures).toEqual([[damaged.run_id, expect.any(DamagedDataError)]]);
    expect((await load(other.run_id)).status).toBe('failed');
  });

  test('stops when the host is closed', async () => {
    const runs = [await bench.running(), await bench.queued(), (await bench.waiting()).run];
    const signal = AbortSignal.abort();
    const files = { listStranded: () => Promise.reject(new Error('the store is closed')) };
    await recoverOrphans(workOf({ files, work: { signal } }));
    await recoverWaitingRuns(workOf({ work: { signal } }));
    for (const run of runs) await expectUntouched(run);
  });
});

describe('a waiting orphan', () => {
  test('with its question and its session stays answerable', async () => {
    const { run, question } = await bench.waiting();
    await recoverWaitingRuns(workOf());
    expect(await load(run.run_id)).toMatchObject({ status: 'waiting_user' });
    expect(await loadEnd(run.run_id)).toMatchObject({ trigger: 'restart.preserve_waiting' });
    expect((await bench.store.loadPendingInteraction(run.run_id))?.interaction_id).toBe(question.interaction_id);
  });

  test('without its session fails, with the question that nobody answered', async () => {
    const { run } = await bench.waiting();
    bench.stub.hasSession = false;
    await recoverWaitingRuns(workOf());
    expect(await load(run.run_id)).toMatchObject({
      status: 'failed',
      error: { code: 'SESSION_RESUME_FAILED', details: { unanswered: { prompt: 'Which name?' } } },
    });
  });

  test.each([
    ['session', { loadHandle: async () => null }],
    ['question', { loadPendingInteraction: async () => null }],
  ])('without a stored %s fails', async (_part, store) => {
    const { run } = await bench.waiting();
    await recoverWaitingRuns(workOf({ store }));
    const { status, error } = await load(run.run_id);
    expect([status, error?.code]).toEqual(['failed', 'SESSION_RESUME_FAILED']);
    expect(error?.details !== undefined).toBe(_part === 'session');
  });

  test('whose session was in its process fails without a search for files', async () => {
    const { run } = await bench.waiting();
    const handle = await bench.store.loadHandle(run.request_id);
    const loadHandle = async () => handle && { ...handle, handle_type: 'process' as const };
    await recoverWaitingRuns(workOf({ store: { loadHandle } }));
    expect((await load(run.run_id)).error?.code).toBe('SESSION_RESUME_FAILED');
  });

  test.each([ANN, null])('with a cancel request is canceled by the one who asked: %o', async (actor) => {
    const { run } = await bench.ask(await requestCancel(await bench.running(), actor));
    await recoverWaitingRuns(workOf());
    const { trigger, actor: recorded } = await loadEnd(run.run_id);
    expect([trigger, recorded]).toEqual(['run.canceled', actor ?? undefined]);
  });

  test('whose session cannot be looked up stays as it is, and the others are checked', async () => {
    const [{ run }, other] = [await bench.waiting(), await bench.waiting()];
    const lookups: unknown[] = [];
    const hasSession = async () => {
      if (lookups.push(1) === 1) throw new Error('the disk is gone');
      return true;
    };
    const work = workOf({ ownership: { listOrphans: async () => [run.run_id, other.run.run_id] } });
    await recoverWaitingRuns({ ...work, deps: { ...work.deps, runtime: { ...work.deps.runtime, hasSession } } });
    expect(failures).toEqual([[run.run_id, new Error('the disk is gone')]]);
    await expectUntouched(run);
    expect(await loadEnd(other.run.run_id)).toMatchObject({ trigger: 'restart.preserve_waiting' });
  });
});

describe('the cancellation of an orphan', () => {
  test('takes the run over and cancels it', async () => {
    const run = await bench.running();
    expect(await cancelOrphan(workOf(), run.run_id, ANN)).toBe(true);
    expect(await loadEnd(run.run_id)).toMatchObject({ to: 'canceled', actor: ANN });
  });

  test('does nothing to a run that is not running, runs here, or has another owner', async () => {
    const [{ run: waiting }, run] = [await bench.waiting(), await bench.running()];
    expect(await cancelOrphan(workOf(), waiting.run_id, ANN)).toBe(false);
    expect(await cancelOrphan(workOf(), 'run_unknown', ANN)).toBe(false);
    expect(await cancelOrphan(workOf({ work: { isRunHere: () => true } }), run.run_id, ANN)).toBe(false);
    expect(await cancelOrphan(workOf({ ownership: { takeOver: async () => null } }), run.run_id, ANN)).toBe(false);
    await expectUntouched(run);
  });

  test('leaves a run that another writer has changed to the caller', async () => {
    const run = await bench.running();
    writeLog(run, { type: 'thread.started', thread_id: SESSION });
    expect(await cancelOrphan(workOf({ store: { append: refuseAppend } }), run.run_id, ANN)).toBe(true);
  });

  test('rejects if the logs cannot be read', async () => {
    const run = await bench.running();
    breakLogs(run);
    await expect(cancelOrphan(workOf(), run.run_id, ANN)).rejects.toThrow();
    expect((await load(run.run_id)).status).toBe('running');
  });
});
