// The run that repeats an interrupted one: which runs get one, and what it starts with.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createRun } from '../../src/commands/create-run.js';
import { buildHandle, findEngine } from '../../src/engines/registry.js';
import { toTimestamp } from '../../src/kernel/clock.js';
import { draft } from '../../src/rasp/draft.js';
import { withRetries } from '../../src/recovery/restart-retry.js';
import type { EngineSessionHandle } from '../../src/run/session-handle.js';
import type { NewRun, RunRecord } from '../../src/store/store.js';
import { TurnWriter } from '../../src/turn/turn-writer.js';
import { CommandBench, T0 } from '../support/command-bench.js';

const SESSION = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';

let bench: CommandBench;
let failures: [string, unknown][];
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => {
  bench.reset();
  failures = [];
});
afterAll(() => bench.close());

function buildRetry(run: RunRecord, confirmed: EngineSessionHandle | null = null): Promise<NewRun | null> {
  const deps = withRetries(bench.deps, (runId, error) => void failures.push([runId, error]));
  return deps.retryInterrupted?.(run, confirmed) ?? Promise.reject(new Error('no retries'));
}

function handleOf(run: RunRecord, type: EngineSessionHandle['handle_type']): EngineSessionHandle {
  const { cwd, home } = run.spec;
  return buildHandle(findEngine(run.spec.engine), SESSION, { cwd, home, attempt: 1, type });
}

async function residentRun(): Promise<RunRecord> {
  const request = { engine: 'codex-app-server', prompt: 'Build it.', execution_mode: 'interactive' } as const;
  return bench.apply(await createRun(bench.deps, request, {}), { event: 'turn.started' });
}

async function applyApproval(run: RunRecord): Promise<RunRecord> {
  const writer = new TurnWriter(bench.deps, run, () => {});
  void writer.add([
    draft('interaction.approval.applied', {
      interaction_id: 'int_1',
      decision: 'approve',
      digest: 'd1',
      applied_at: toTimestamp(T0),
    }),
  ]);
  await writer.flush();
  return writer.run;
}

test('the retry is a new run by the recovery with its own request id', async () => {
  const run = await bench.running({ labels: { team: 'a' } });
  const retry = await buildRetry(run);
  expect(retry).toMatchObject({
    request_id: `retry-after-restart:${run.run_id}`,
    spec: { engine: 'codex', prompt: 'Build it.', labels: { team: 'a' }, retry_of: run.run_id },
    crashes_of: run.run_id,
    handle: null,
  });
  expect(retry?.journal.rasp.bytes.toString()).toContain('"actor":{"kind":"system","name":"recovery"}');
  expect(failures).toEqual([]);
});

test('the retry continues the session that is confirmed with the failure', async () => {
  const run = await bench.running();
  expect((await buildRetry(run, handleOf(run, 'session_id')))?.handle).toMatchObject({ handle_value: SESSION });
});

test('the retry does not continue a session that ended with its process', async () => {
  const run = await bench.running();
  expect(await buildRetry(run, handleOf(run, 'process'))).toMatchObject({ handle: null });
});

test('the retry continues the session that was stored before', async () => {
  const { run } = await bench.waiting();
  expect((await buildRetry(run))?.handle).toMatchObject({ handle_value: SESSION });
});

test('a run that is a retry itself or has a cancel request is not repeated', async () => {
  expect(await buildRetry(await bench.running({}, { retryOf: 'run_0' }))).toBeNull();
  const run = await bench.running();
  expect(await buildRetry({ ...run, cancel_requested: { at: T0, actor: null } })).toBeNull();
  expect(failures).toEqual([]);
});

test('a turn in which an approval was applied is not repeated', async () => {
  const run = await residentRun();
  expect(await buildRetry(run)).not.toBeNull();
  const applied = await applyApproval(run);
  expect(await buildRetry(applied)).toBeNull();
  // The approval of an earlier turn does not matter.
  expect(await buildRetry({ ...applied, attempt_number: 2 })).not.toBeNull();
});

test('the journal of an engine that cannot ask for approval is not read', async () => {
  const run = await applyApproval(await bench.running());
  expect(await buildRetry(run)).not.toBeNull();
});

test('an error is reported and only prevents the retry', async () => {
  const run = await bench.running();
  const broken = { ...run, spec: { ...run.spec, engine: 'unknown' } };
  expect(await buildRetry(broken)).toBeNull();
  expect(failures).toEqual([[run.run_id, expect.objectContaining({ code: 'UNKNOWN_ENGINE' })]]);
});
