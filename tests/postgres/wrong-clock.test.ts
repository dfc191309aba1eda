// A host whose clock is wrong by an hour: it creates, runs and answers like any other, nothing is lost or out of order,
// and deadlines follow the clock of the database.
import { expect, test } from 'vitest';
import type { ParleyClient } from '../../src/client/client.js';
import { becomes, proves, withHosts } from '../support/hosts.js';
import type { ServerProcess } from '../support/served-process.js';

const HOUR = 3600 * 1000;
const CLOCKS = [
  ['an hour ahead', HOUR],
  ['an hour behind', -HOUR],
] as const;

const answer = async ({ client }: ServerProcess, id: string) =>
  client.reply(id, { interaction_id: (await client.interaction(id)).interaction_id, response: 'Yes' });

test.each(CLOCKS)(
  'a host whose clock is %s creates, runs and answers runs in order, and they verify',
  async (_name, shiftMs) => {
    const hosts = await withHosts({ slots: 1 });
    const wrong = await hosts.start('wrong', { shiftMs });
    const { run_id: id } = await wrong.client.create({
      engine: 'rehearsal',
      prompt: '[[events 20 60]] [[ask First?]] [[events 20 60]] [[ask Second?]] [[events 20 60]] [[done 1]]',
      execution_mode: 'interactive',
    });
    await becomes(wrong.client, id).toBe('waiting_user');
    // Its stored data has the time of the database.
    const askedAt = Date.parse((await wrong.client.get(id)).updated_at);
    expect(Math.abs(askedAt - Date.now())).toBeLessThan(60_000);
    const { run_id: hanging } = await wrong.client.create({ engine: 'rehearsal', prompt: '[[hang]]' });
    await becomes(wrong.client, hanging).toBe('running');
    // Its slot is taken: the second turn runs on another host with a correct clock.
    const right = await hosts.start('right');
    const seqs: number[] = [];
    const watching = (async () => {
      for await (const { seq } of right.client.events(id)) seqs.push(seq);
    })();
    await answer(right, id);
    await expect.poll(async () => (await right.client.get(id)).attempt_number, { timeout: 30_000 }).toBe(2);
    await becomes(right.client, id).toBe('waiting_user');
    await answer(wrong, id);
    await becomes(wrong.client, id).toBe('succeeded');
    await watching;
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    const { events } = (await (await right.client.request('GET', `/v1/runs/${id}/rasp/history?limit=5000`)).json()) as {
      events: { ts: string }[];
    };
    expect(events.map(({ ts }) => ts)).toEqual(events.map(({ ts }) => ts).toSorted());
    expect(hosts.traced(id).map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    // The clock of the database decides which hosts are alive.
    expect((await right.client.get(hanging)).status).toBe('running');
    expect(await right.client.cancel(hanging)).toMatchObject({ status: 'canceled' });
    for (const each of [id, hanging]) await proves(right.client, each);
  },
);

// How long the question waited for its decision, by the times in the journal, which are those of the database.
async function waitedMs(client: ParleyClient, id: string): Promise<number> {
  const times = new Map<string, number>();
  for await (const { event, ts } of client.rasp(id)) times.set(event.type, Date.parse(ts));
  return (times.get('interaction.auto_decide.timeout') ?? 0) - (times.get('interaction.requested') ?? 0);
}

test.each(CLOCKS)(
  'a question of a host whose clock is %s expires by the clock of the database',
  async (_name, shiftMs) => {
    const hosts = await withHosts();
    const wrong = await hosts.start('wrong', { shiftMs });
    const runtime = { session_timeout_sec: 4, interactive_require_user_reply: false };
    const { run_id: id } = await wrong.client.create({
      engine: 'rehearsal',
      prompt: '[[ask Which?]] [[done 1]]',
      execution_mode: 'interactive',
      runtime_options: runtime,
    });
    await becomes(wrong.client, id).toBe('waiting_user');
    await becomes(wrong.client, id).toBe('succeeded');
    expect(await waitedMs(wrong.client, id)).toBeGreaterThan(3000);
    await proves(wrong.client, id);
  },
);

// If the other one asks, the wrong clock must not decide it early or forget it.
test.each(CLOCKS)(
  'a question of another host is not decided early by one whose clock is %s, and not forgotten by it',
  async (_name, shiftMs) => {
    const hosts = await withHosts();
    const right = await hosts.start('right');
    const runtime = { session_timeout_sec: 4, interactive_require_user_reply: false };
    const { run_id: id } = await right.client.create({
      engine: 'rehearsal',
      prompt: '[[ask Which?]] [[done 1]]',
      execution_mode: 'interactive',
      runtime_options: runtime,
    });
    await becomes(right.client, id).toBe('waiting_user');
    right.child.kill('SIGKILL');
    await right.ended;
    const wrong = await hosts.start('wrong', { shiftMs });
    await becomes(wrong.client, id).toBe('succeeded');
    expect(await waitedMs(wrong.client, id)).toBeGreaterThan(3000);
    await proves(wrong.client, id);
  },
);
