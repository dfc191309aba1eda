// A resumed engine that responds in another session is ended as soon as that is detected, before it has done anything.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createRoot, expectSound, journalOf, openBench } from '../support/orchestrated.js';

test.each(['codex', 'gemini', 'iflow', 'opencode'])(
  '%s that names another session id is ended at once, before its next action',
  async (engine) => {
    const root = createRoot();
    const bench = await openBench(root);
    const [gate, never] = [join(root, 'gate'), join(root, 'never.txt')];
    // It would act as soon as the file exists.
    const prompt =
      `[[ask Which?]][[othersession]][[tool until test -e ${gate}; do sleep 0.02; done; touch ` +
      `${never}]][[done 1]]`;
    const { run_id: runId } = await bench.orchestrator.create({
      engine,
      prompt,
      execution_mode: 'interactive',
      permission: 'full',
      runtime_options: { turn_timeout_sec: 20 },
    });
    await bench.orchestrator.waitUntilIdle(runId);
    const pending = await bench.data.store.loadPendingInteraction(runId);
    await bench.orchestrator.reply(runId, { interaction_id: pending?.interaction_id ?? '', response: 'x' });
    await bench.orchestrator.waitUntilIdle(runId);
    // And with it all of its process tree.
    expect(await expectSound(bench, runId)).toMatchObject({
      status: 'failed',
      error: { code: 'SESSION_RESUME_FAILED' },
    });
    writeFileSync(gate, '');
    const ended = (await journalOf(bench, runId)).rasp.findLast(({ event }) => event.type === 'lifecycle.turn.ended');
    expect(ended?.data).toMatchObject({ completion: { result: 'interrupted', reason_code: 'SESSION_CHANGED' } });
    expect(existsSync(never)).toBe(false);
    await bench.close();
  },
);
