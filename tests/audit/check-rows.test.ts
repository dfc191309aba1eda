// The cancel request in the row of a run, checked against its events, and the memory that the check of the rows needs.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { RowsCheck } from '../../src/audit/check-rows.js';
import { loadRows } from '../../src/audit/load-rows.js';
import type { RaspEvent } from '../../src/rasp/event.js';
import { TurnWriter } from '../../src/turn/turn-writer.js';
import type { RunRecord } from '../../src/store/store.js';
import { CommandBench, T0 } from '../support/command-bench.js';

const REQUEST = { at: T0, actor: { kind: 'user', name: 'ann' } } as const;
const UNRECORDED = { ...REQUEST, unrecorded: true } as const;
const PROBLEM = 'the cancel request of the run differs from its event';

let bench: CommandBench;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => bench.reset());
afterAll(() => bench.close());

async function createRunning(): Promise<RunRecord> {
  return bench.apply(await bench.queued(), { event: 'turn.started', epoch: 1 });
}

async function withRequest(run: RunRecord): Promise<RunRecord> {
  const writer = new TurnWriter(bench.deps, run, () => {});
  await writer.recordCancel(REQUEST);
  return writer.run;
}

// As an earlier version of Parley wrote it.
function withoutVersion(event: RaspEvent): RaspEvent {
  const { fold_version: _version, ...data } = event.data;
  return { ...event, data };
}

// Returns the finding, or null if the rows match the events.
async function explain(
  run: RunRecord,
  cancelRequested: RunRecord['cancel_requested'],
  edit = (event: RaspEvent): RaspEvent => event,
): Promise<string | null> {
  const rows = await loadRows(bench.store, run);
  const changed = { ...run, cancel_requested: cancelRequested };
  const check = new RowsCheck(bench.store, { ...rows, run: changed }, []);
  for (const event of await bench.eventsOf(run.run_id)) check.event(edit(event));
  const { ok, finding } = await check.finish();
  return ok ? null : finding;
}

test('a request without an event is reported, unless the row marks it as unrecorded', async () => {
  const run = await createRunning();
  expect(await explain(run, null)).toBeNull();
  expect(await explain(run, REQUEST)).toBe(PROBLEM);
  expect(await explain(run, UNRECORDED)).toBeNull();
});

test('a request with an event must be in the row, without the mark', async () => {
  const run = await withRequest(await createRunning());
  expect(await explain(run, REQUEST)).toBeNull();
  expect(await explain(run, UNRECORDED)).toBe(PROBLEM);
  expect(await explain(run, null)).toBe(PROBLEM);
  expect(await explain(run, { ...REQUEST, actor: null })).toBe(PROBLEM);
  expect(await explain(run, { ...REQUEST, at: T0 + 1 })).toBe(PROBLEM);
});

test('a request without an event is accepted in a run of an earlier version', async () => {
  const run = await createRunning();
  for (const request of [null, REQUEST, UNRECORDED]) expect(await explain(run, request, withoutVersion)).toBeNull();
});

test('a request with an event must be in the row of a run of an earlier version as well', async () => {
  const run = await withRequest(await createRunning());
  expect(await explain(run, REQUEST, withoutVersion)).toBeNull();
  expect(await explain(run, null, withoutVersion)).toBe(PROBLEM);
});

const IDS = 100_000;
const MIB = 1024 * 1024;

test('the memory of the check does not grow with the session ids that the engine prints', async () => {
  const run = await createRunning();
  const check = new RowsCheck(bench.store, await loadRows(bench.store, run), []);
  const [first] = await bench.eventsOf(run.run_id);
  if (!first) throw new Error('the run has no event');
  const type = 'lifecycle.session.bound';
  const bind = (number: number): void =>
    check.event({
      ...first,
      source: { ...first.source, parser: 'codex_ndjson' },
      event: { category: 'lifecycle', type },
      data: { session_id: `session ${number}`, handle_type: 'session_id' },
    });
  bind(0);
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let number = 1; number <= IDS; number += 1) bind(number);
  collect();
  expect((process.memoryUsage().heapUsed - before) / MIB).toBeLessThan(2);
  // The check is still in use, so its state was not collected.
  check.event(first);
});
