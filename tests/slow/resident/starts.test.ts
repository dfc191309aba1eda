// A start that hangs: canceling the run or stopping the server does not wait for it.
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { createRoot, expectSound, processesOf } from '../../support/orchestrated.js';
import { ENGINE, openResidentBench, type ResidentBench } from '../../support/resident-bench.js';

// It sends no response, and ignores SIGTERM.
async function openHanging(): Promise<ResidentBench> {
  const root = createRoot();
  const program = join(root, 'hangs');
  writeFileSync(program, '#!/bin/sh\ntrap "" TERM\nwhile :; do sleep 1; done\n');
  chmodSync(program, 0o755);
  return openResidentBench({ root, runtime: { findProgram: async () => [program] } });
}

async function begin(bench: ResidentBench, runtime_options = {}): Promise<string> {
  const { run_id: runId } = await bench.orchestrator.create({
    engine: ENGINE,
    prompt: 'x',
    execution_mode: 'interactive',
    runtime_options,
  });
  await vi.waitFor(() => expect(processesOf(runId)).not.toEqual([]), { timeout: 20_000 });
  return runId;
}

test('a cancel ends it', async () => {
  const bench = await openHanging();
  const runId = await begin(bench);
  expect((await bench.orchestrator.cancel(runId)).status).toBe('canceled');
  await expectSound(bench, runId);
  await bench.close();
});

test.each([
  ['turn_timeout_sec', 'TURN_TIMEOUT'],
  ['idle_timeout_sec', 'ENGINE_IDLE_TIMEOUT'],
])('%s ends it', async (name, code) => {
  const bench = await openHanging();
  const runId = await begin(bench, { [name]: 1 });
  expect(await bench.waitUntilIdle({ run_id: runId })).toMatchObject({ status: 'failed', error: { code } });
  await bench.close();
});

test('a stop ends it', async () => {
  const bench = await openHanging();
  const runId = await begin(bench);
  await bench.orchestrator.close();
  expect(await expectSound(bench, runId)).toMatchObject({
    status: 'failed',
    error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' },
  });
  await bench.data.close();
});
