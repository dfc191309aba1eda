// Several servers on one database: any of them creates, plays, shows and answers any run; one that dies leaves nothing behind.
import { expect, test } from 'vitest';
import type { ParleyClient } from '../../src/client/client.js';
import { withHosts } from '../support/hosts.js';

const ASK = '[[ask Which database? | Postgres | SQLite]] [[done "ok"]]';

const becomes = (client: ParleyClient, id: string) => expect.poll(async () => (await client.get(id)).status, { timeout: 30_000 });

test('a question asked on one host is answered on another and seen on a third', async () => {
  const hosts = await withHosts();
  const [a, b, c] = [await hosts.start('a'), await hosts.start('b'), await hosts.start('c')];
  const { run_id: id } = await a.client.create({ engine: 'rehearsal', prompt: ASK, execution_mode: 'interactive' });
  const seen: string[] = [];
  const watching = (async () => {
    for await (const { type } of c.client.events(id)) seen.push(type);
  })();
  await becomes(b.client, id).toBe('waiting_user');
  const pending = await b.client.interaction(id);
  await b.client.reply(id, { interaction_id: pending.interaction_id, response: 'SQLite' });
  await watching;
  expect(seen).toContain('interaction.reply.accepted');
  expect(await c.client.get(id)).toMatchObject({ status: 'succeeded', attempt_number: 2 });
  expect((await c.client.verify(id)).ok).toBe(true);
});
