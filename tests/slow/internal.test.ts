// Defects and refusals around a turn: the run ends with INTERNAL and is never stuck.
import { expect, test } from 'vitest';
import { createRoot, expectSound, openBench } from '../support/orchestrated.js';

test.each([
  [
    'finding the program',
    {
      findProgram: async () => {
        throw new Error('sk-abcdefgh12345678 is broken');
      },
    },
  ],
  [
    'making the environment',
    {
      environment: () => {
        throw new Error('sk-abcdefgh12345678 is broken');
      },
    },
  ],
])('a failure in %s fails the run, with the reason and without a secret', async (_what, runtime) => {
  const bench = await openBench(createRoot(), { runtime });
  const { run_id: runId } = await bench.orchestrator.create({ engine: 'codex', prompt: 'say hello' });
  await bench.orchestrator.waitUntilIdle(runId);
  expect(await expectSound(bench, runId)).toMatchObject({
    status: 'failed',
    error: { code: 'INTERNAL', message: 'The turn could not be run: [redacted] is broken' },
  });
  expect(bench.failures).toHaveLength(1);
  bench.failures.length = 0;
  await bench.close();
});
