// A server ends interrupted turns while it serves: what it shows and refuses meanwhile, and what happens if it is
// stopped.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runFolder } from '../../src/journal/run-folder.js';
import { Orchestrator } from '../../src/orchestrator/orchestrator.js';
import { systemTimers } from '../../src/process/timers.js';
import type { RequestError } from '../../src/run/request-error.js';
import { recoverWaitingRuns } from '../../src/recovery/recover.js';
import type { RunRecord, Store } from '../../src/store/store.js';
import { alterStore } from '../support/altered-store.js';
import { CommandBench } from '../support/command-bench.js';
import { Gate } from '../support/gate.js';

const OUTPUT = readFileSync(new URL('../golden/codex/exec-plain/stdout.bin', import.meta.url));

let bench: CommandBench;
let failures: unknown[];
let opened: Orchestrator[];
beforeEach(async () => {
  bench = await CommandBench.open();
  failures = [];
  opened = [];
});
afterEach(async () => {
  for (const orchestrator of opened) await orchestrator.close();
  await bench.close();
});

async function open(store: Store, recoversBeside: boolean, running: 'fail' | 'retry' = 'fail'): Promise<Orchestrator> {
  const orchestrator = await Orchestrator.open(
    { ...bench.deps, store, timers: systemTimers },
    {
      slots: 1,
      recovery: { queued: 'fail', running },
      runsTurns: false,
      recoversBeside,
      onFailure: (_runId, error) => void failures.push(error),
    },
  );
  opened.push(orchestrator);
  return orchestrator;
}

// A running run whose process is dead. Its log holds output that has no event yet.
async function interrupted(): Promise<RunRecord> {
  const run = await bench.running();
  const log = runFolder(bench.data.path, run.run_id).attempt(1).logs.stdout;
  mkdirSync(dirname(log), { recursive: true });
  writeFileSync(log, OUTPUT);
  return run;
}

// Ending a run begins with reading its journal. The store holds these reads of one run.
function hold({ run_id: held }: RunRecord): { store: Store; arrived: Gate; release: Gate } {
  const [arrived, release] = [new Gate(), new Gate()];
  const store = alterStore(bench.store, {
    readJournal: async (runId, protocol, range) => {
      if (runId === held) {
        arrived.open();
        await release.opened;
      }
      return bench.store.readJournal(runId, protocol, range);
    },
  });
  return { store, arrived, release };
}

const statusOf = async ({ run_id: runId }: RunRecord): Promise<string | undefined> =>
  (await bench.store.loadRun(runId))?.status;

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'accepted',
    (error: RequestError) => error.code,
  );

test('a server opens at once; a run is recovering until it is ended, and refuses what needs its end', async () => {
  const run = await interrupted();
  const { store, arrived, release } = hold(run);
  const orchestrator = await open(store, true);
  await arrived.opened;
  expect(orchestrator.isRecovering(run.run_id)).toBe(true);
  for (const refused of [
    orchestrator.retry(run.run_id),
    orchestrator.continueFrom(run.run_id, { prompt: 'Go on.' }),
    orchestrator.fork(run.run_id, { prompt: 'Go on.' }),
    orchestrator.reply(run.run_id, { interaction_id: 'int_1', response: 'yes' }),
    orchestrator.delete(run.run_id),
  ])
    expect(await codeOf(refused)).toBe('RUN_RECOVERING');
  release.open();
  await orchestrator.recovered();
  expect(orchestrator.isRecovering(run.run_id)).toBe(false);
  expect(await statusOf(run)).toBe('failed');
  expect(await codeOf(orchestrator.delete(run.run_id))).toBe('accepted');
  expect(failures).toEqual([]);
});

test('other runs can be created, canceled and canceled as interrupted ones meanwhile', async () => {
  const first = await interrupted();
  const second = await interrupted();
  const { store, arrived, release } = hold(second);
  const orchestrator = await open(store, true);
  await arrived.opened;
  // The newest is ended first, so this one still waits for its turn.
  expect(orchestrator.isRecovering(first.run_id)).toBe(true);
  expect((await orchestrator.cancel(first.run_id)).status).toBe('canceled');
  const created = await orchestrator.create({ engine: 'codex', prompt: 'Build it.', execution_mode: 'auto' });
  expect(created.status).toBe('queued');
  expect(await statusOf(second)).toBe('running');
  release.open();
  await orchestrator.recovered();
  expect([await statusOf(first), await statusOf(second)]).toEqual(['canceled', 'failed']);
  expect(await statusOf(created)).toBe('queued');
  expect(failures).toEqual([]);
});

test('a run that is canceled while its output is read ends as canceled, and is not repeated', async () => {
  const run = await interrupted();
  const { store, arrived, release } = hold(run);
  const orchestrator = await open(store, true, 'retry');
  await arrived.opened;
  const canceled = orchestrator.cancel(run.run_id, { kind: 'user', name: 'ann' });
  // The request waits for the end of the recovery.
  await new Promise((resolve) => setImmediate(resolve));
  release.open();
  expect(await canceled).toMatchObject({ status: 'canceled' });
  await orchestrator.recovered();
  expect(await bench.store.listRunIds({ limit: 10 })).toEqual([run.run_id]);
  const changed = (await bench.eventsOf(run.run_id)).at(-1);
  expect(changed?.data).toMatchObject({ trigger: 'run.canceled', actor: { name: 'ann' } });
});

test('a reader that sees the end of a run does not see it as recovering any more', async () => {
  const runs = [await interrupted(), await interrupted()];
  const seen: unknown[] = [];
  const { store, arrived, release } = hold(runs[1] as RunRecord);
  const orchestrator = await open(store, true);
  store.onCommitted(({ run_id: runId, status }) => {
    if (status !== undefined) seen.push([runId, status, orchestrator.isRecovering(runId)]);
  });
  await arrived.opened;
  release.open();
  await orchestrator.recovered();
  expect(seen).toEqual(runs.toReversed().map(({ run_id: runId }) => [runId, 'failed', false]));
});

test('a reply that is repeated returns its run, although the run is recovering', async () => {
  const { run, question } = await bench.waiting();
  const reply = { interaction_id: question.interaction_id, response: 'Ann', idempotency_key: 'key-1' };
  const before = await open(bench.store, false);
  await before.reply(run.run_id, reply);
  await before.close();
  opened.pop();
  await bench.apply((await bench.store.loadRun(run.run_id)) as RunRecord, { event: 'turn.started' });
  const { store, arrived, release } = hold(run);
  const orchestrator = await open(store, true);
  await arrived.opened;
  expect(await orchestrator.reply(run.run_id, reply)).toMatchObject({ run_id: run.run_id, status: 'running' });
  expect(await codeOf(orchestrator.reply(run.run_id, { ...reply, idempotency_key: 'key-2' }))).toBe('RUN_RECOVERING');
  release.open();
  await orchestrator.recovered();
});

test('queued runs of the previous process have failed before the server opens', async () => {
  const queued = await Promise.all(Array.from({ length: 120 }, () => bench.queued()));
  const run = await interrupted();
  const { store, release } = hold(run);
  const orchestrator = await open(store, true);
  expect(new Set(await Promise.all(queued.map(statusOf)))).toEqual(new Set(['failed']));
  release.open();
  await orchestrator.recovered();
});

test('without a server, interrupted turns are ended before anything else', async () => {
  const run = await interrupted();
  await open(bench.store, false);
  expect(await statusOf(run)).toBe('failed');
});

test('a server that is stopped leaves the rest to the next start, which stores the same output once', async () => {
  const runs = [await interrupted(), await interrupted()];
  const { store, arrived, release } = hold(runs[1] as RunRecord);
  const orchestrator = await open(store, true);
  await arrived.opened;
  const closed = orchestrator.close();
  opened.pop();
  release.open();
  await closed;
  expect(await Promise.all(runs.map(statusOf))).toEqual(['running', 'running']);
  expect(failures).toEqual([]);
  await open(bench.store, false);
  expect(await Promise.all(runs.map(statusOf))).toEqual(['failed', 'failed']);
  const types = await Promise.all(
    runs.map(async ({ run_id: runId }) => (await bench.eventsOf(runId)).map(({ event }) => event.type)),
  );
  expect(types[0]).toEqual(types[1]);
  expect(types[0]?.filter((type) => type === 'agent.message.final')).toHaveLength(1);
});

test('waiting runs are checked in groups, whose events share a transaction', async () => {
  const count = 120;
  for (let number = 0; number < count; number += 1) await bench.waiting();
  let running = 0;
  let most = 0;
  const store = alterStore(bench.store, {
    append: async (change) => {
      running += 1;
      most = Math.max(most, running);
      return bench.store.append(change).finally(() => (running -= 1));
    },
  });
  const deps = { ...bench.deps, store, timers: systemTimers };
  await recoverWaitingRuns({
    deps,
    settings: { queued: 'fail' },
    journalFiles: { write: async () => {} },
    isRunHere: () => false,
    recovering: new Set(),
    cancels: new Map(),
    exclusively: (_runId, piece) => piece(),
    signal: new AbortController().signal,
    onFailure: (_runId, error) => void failures.push(error),
  });
  expect(most).toBe(50);
  expect(failures).toEqual([]);
  const ids = await bench.store.listRunIds({ status: 'waiting_user', limit: 500 });
  expect(ids).toHaveLength(count);
  for (const runId of ids) {
    const events = await bench.eventsOf(runId);
    expect(events.at(-1)?.data).toMatchObject({ trigger: 'restart.preserve_waiting' });
  }
});
