// Damaged rows in a shared database: as with SQLite, one does not affect another, and a damaged run can be shown and
// deleted.
import { expect, test } from 'vitest';
import { parley } from '../support/command.js';
import { becomes, withHosts } from '../support/hosts.js';

const ASK = '[[ask Which database? | Postgres | SQLite]] [[done "ok"]]';

test.each(['{', '{"kind":"zzz","prompt":"x","options":[]}', '{"kind":"choose_one","prompt":"x","options":[null]}'])(
  'one damaged question breaks neither inbox, stream and lists nor other answers: %s',
  async (text) => {
    const hosts = await withHosts();
    const a = await hosts.start('a');
    const ids: string[] = [];
    for (let count = 0; count < 3; count += 1) {
      const { run_id: id } = await a.client.create({ engine: 'rehearsal', prompt: ASK, execution_mode: 'interactive' });
      await becomes(a.client, id).toBe('waiting_user');
      ids.push(id);
    }
    const [first = '', middle = '', last = ''] = ids;
    await hosts.database.query(`UPDATE parley.interactions SET question_json = $2 WHERE run_id = $1`, [middle, text]);
    expect((await a.client.inbox()).interactions.map(({ run_id: id }) => id)).toEqual([first, last]);
    const notices: string[] = [];
    for await (const change of a.client.inboxChanges()) {
      if (change.type === 'pending') notices.push(change.item.run_id);
      if (change.type === 'ready') break;
    }
    expect(notices).toEqual([first, last]);
    expect((await a.client.list()).runs.map(({ run_id: id }) => id)).toEqual([last, first]);
    const env = { PARLEY_DATABASE_URL: hosts.database.url, PARLEY_TOKEN: a.token };
    const listed = await parley(hosts.site, ['ls', '-q'], { env });
    expect(listed).toMatchObject({
      code: 0,
      stdout: `${last}\n${first}\n`,
      stderr: expect.stringContaining(`run ${middle} is not listed`) as string,
    });
    expect(await a.client.get(middle)).toMatchObject({
      status: 'waiting_user',
      interaction: null,
      damage: [expect.stringContaining('question_json') as string],
    });
    const shown = await parley(hosts.site, ['show', middle], { env });
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining('Which database?') as string });
    await a.client.reply(last, {
      interaction_id: (await a.client.interaction(last)).interaction_id,
      response: 'SQLite',
    });
    await becomes(a.client, last).toBe('succeeded');
    await a.client.delete(middle);
    await expect(a.client.get(middle)).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
  },
);

test.each([
  `spec_json = '{'`,
  `spec_json = (spec_json::jsonb || '{"model":5}')::text`,
  `error_json = '[]'`,
  `status = 'lost'`,
])('one damaged run breaks no list, is found by doctor and can be deleted by rm: %s', async (assignment) => {
  const hosts = await withHosts();
  const a = await hosts.start('a');
  const ids: string[] = [];
  for (let count = 0; count < 2; count += 1) {
    const { run_id: id } = await a.client.create({ engine: 'rehearsal', prompt: '[[done 1]]' });
    await becomes(a.client, id).toBe('succeeded');
    ids.push(id);
  }
  const [damaged = '', whole = ''] = ids;
  await hosts.database.query(`UPDATE parley.runs SET ${assignment} WHERE run_id = $1`, [damaged]);
  expect((await a.client.list()).runs.map(({ run_id: id }) => id)).toEqual([whole]);
  expect(await a.client.get(damaged)).toMatchObject({
    run_id: damaged,
    engine: 'rehearsal',
    damage: [expect.stringContaining(damaged) as string],
  });
  const env = { PARLEY_DATABASE_URL: hosts.database.url, PARLEY_TOKEN: a.token };
  const doctor = await parley(hosts.site, ['doctor'], { env });
  expect(doctor).toMatchObject({
    code: 1,
    stdout: expect.stringContaining(`1 of 2 runs are damaged: ${damaged}`) as string,
  });
  expect(await parley(hosts.site, ['rm', damaged], { env })).toMatchObject({ code: 0 });
  expect(await parley(hosts.site, ['doctor'], { env })).toMatchObject({
    stdout: expect.stringContaining('none found: checked all 1 runs') as string,
  });
});

test.each([
  [
    'cut off',
    'UPDATE parley.segments SET body = substr(body, 1, 20) WHERE run_id = $1 AND protocol = $2 AND seq_from = $3',
  ],
  ['empty', `UPDATE parley.segments SET body = '' WHERE run_id = $1 AND protocol = $2 AND seq_from = $3`],
  ['missing', 'DELETE FROM parley.segments WHERE run_id = $1 AND protocol = $2 AND seq_from = $3'],
])('a piece of a journal that is %s is named by show, watch, streams and doctor --full', async (_what, statement) => {
  const hosts = await withHosts();
  const a = await hosts.start('a');
  const { run_id: id } = await a.client.create({ engine: 'rehearsal', prompt: '[[done 1]]' });
  await becomes(a.client, id).toBe('succeeded');
  const { fcmp_seq: head } = await a.client.get(id);
  const rows = await hosts.database.query<{ seq_from: unknown; seq_to: unknown }>(
    `SELECT seq_from, seq_to FROM parley.segments WHERE run_id = $1 AND protocol = 'fcmp' ORDER BY seq_from`,
    [id],
  );
  const [first = 0, last = 0] = [rows.at(-1)?.seq_from, rows.at(-1)?.seq_to].map(Number);
  await hosts.database.query(statement, [id, 'fcmp', first]);
  expect(last).toBe(head);
  const env = { PARLEY_DATABASE_URL: hosts.database.url, PARLEY_TOKEN: a.token };
  const prefix = `fcmp events ${first} to ${last}: `;
  for (const args of [
    ['show', id],
    ['watch', id],
    ['watch', id, '--no-follow', '--json'],
  ]) {
    expect(await parley(hosts.site, args, { env })).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`damaged: ${prefix}`) as string,
    });
  }
  let read = 0;
  for await (const event of a.client.events(id)) read = Math.max(read, event.seq);
  expect(read).toBe(first - 1);
  expect(await parley(hosts.site, ['doctor', '--full'], { env })).toMatchObject({
    code: 1,
    stdout: expect.stringContaining(`1 of 1 runs are damaged: ${id} (${prefix}`) as string,
  });
});
