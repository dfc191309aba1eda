// The inbox in a real browser: what waits is there, is answered by a click or two keys, and says what became of the answer.
import { expect, test } from 'vitest';
import { expectAccessible, openDesk, takePicture } from './browser.js';

const ASK = '[[ask Which database should it be? | Postgres | SQLite]] [[done "ok"]]';

test('what waits is shown, oldest first, and is answered by a click', async () => {
  const desk = await openDesk();
  const first = await desk.server.client.create({ engine: 'rehearsal', prompt: `Set up the storage. ${ASK}`, execution_mode: 'interactive' });
  const page = await desk.open('/');
  const card = page.locator('[data-interaction]');
  await card.first().waitFor();
  expect(await page.title()).toBe('(1) Parley');
  await expectAccessible(page);
  await takePicture(page, 'inbox');
  await card.getByRole('button', { name: 'SQLite' }).click();
  await page.getByText('Accepted').waitFor();
  await page.getByText('Nothing waits for you').waitFor({ timeout: 15_000 });
  expect(await page.title()).toBe('Parley');
  expect((await desk.server.client.get(first.run_id)).status).toBe('succeeded');
});
