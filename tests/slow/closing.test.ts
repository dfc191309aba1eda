// An orchestrator that is closing refuses new work and finishes accepted work.
import { expect, test } from 'vitest';
import { alterStore } from '../support/altered-store.js';
import { Gate } from '../support/gate.js';
import { createRoot, expectSound, openBench } from '../support/orchestrated.js';

test('an answer being stored at shutdown runs within the grace; a later one is refused, its run waits on', async () => {
  const [held, reached] = [new Gate(), new Gate()];
  let hold = false;
  const bench = await openBench(createRoot(), {
    store: (store) =>
      alterStore(store, {
        append: async (change) => {
          if (hold && change.before.status === 'waiting_user') {
            reached.open();
            await held.opened;
          }
          return store.append(change);
        },
      }),
  });
  const ask = async (): Promise<[string, string]> => {
    const { run_id: runId } = await bench.orchestrator.create({
      engine: 'codex',
      prompt: '[[ask Which?]][[done 1]]',
      execution_mode: 'interactive',
      permission: 'full',
    });
    await bench.orchestrator.waitUntilIdle(runId);
    return [runId, (await bench.data.store.loadPendingInteraction(runId))?.interaction_id ?? ''];
  };
  const [[first, firstAsked], [second, secondAsked]] = [await ask(), await ask()];
  hold = true;
  const answered = bench.orchestrator.reply(first, { interaction_id: firstAsked, response: 'a' });
  await reached.opened;
  const closed = bench.orchestrator.close({ graceMs: 60_000 });
  for (const late of [
    bench.orchestrator.reply(second, { interaction_id: secondAsked, response: 'a' }),
    bench.orchestrator.create({ engine: 'codex', prompt: 'x' }),
    bench.orchestrator.retry(first),
    bench.orchestrator.continueFrom(first, { prompt: 'x' }),
    bench.orchestrator.delete(first),
  ])
    await expect(late).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
  held.open();
  expect((await answered).status).toBe('queued');
  await closed;
  expect((await expectSound(bench, first)).status).toBe('succeeded');
  expect((await expectSound(bench, second)).status).toBe('waiting_user');
  await bench.close();
});
