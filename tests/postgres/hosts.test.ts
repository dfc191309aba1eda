// Several servers on one database: any of them creates, runs, shows and answers any run; a dead one leaves nothing
// behind.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { becomes, proves, withHosts } from '../support/hosts.js';
import { openPostgresProxy } from '../support/postgres-proxy.js';

const ASK = '[[ask Which database? | Postgres | SQLite]] [[done "ok"]]';

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
  const answered = await b.client.reply(id, { interaction_id: pending.interaction_id, response: 'SQLite' });
  expect(answered.waited_ms).toBeGreaterThan(0);
  await watching;
  expect((await c.client.get(id)).waited_ms).toBe(answered.waited_ms);
  expect(seen).toContain('interaction.reply.accepted');
  expect(await c.client.get(id)).toMatchObject({ status: 'succeeded', attempt_number: 2 });
  await proves(c.client, id);
});

test('a killed host leaves waiting runs answerable, queued ones queued; others end soon after its lease', async () => {
  const hosts = await withHosts({ slots: 1 });
  const [a, b] = [await hosts.start('a'), await hosts.start('b')];
  const { run_id: waiting } = await a.client.create({
    engine: 'rehearsal',
    prompt: ASK,
    execution_mode: 'interactive',
  });
  await becomes(a.client, waiting).toBe('waiting_user');
  // One at each of the two.
  const hanging = await Promise.all(
    [0, 1].map(async () => (await a.client.create({ engine: 'rehearsal', prompt: '[[hang]]' })).run_id),
  );
  for (const id of hanging) await becomes(a.client, id).toBe('running');
  const { run_id: queued } = await a.client.create({ engine: 'rehearsal', prompt: '[[done "later"]]' });
  const owners = await hosts.database.query<{ run_id: string; name: string }>(
    'SELECT run_id, name FROM parley.runs JOIN parley.hosts ON host_id = owner',
  );
  expect(owners.map(({ name }) => name).toSorted()).toEqual(['a', 'b']);
  const ofA = owners.find(({ name }) => name === 'a')?.run_id ?? '';
  const ofB = owners.find(({ name }) => name === 'b')?.run_id ?? '';
  a.child.kill('SIGKILL');
  await a.ended;
  await becomes(b.client, ofA).toBe('failed');
  expect(await b.client.get(ofA)).toMatchObject({ error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' } });
  expect((await b.client.get(ofB)).status).toBe('running');
  expect((await b.client.get(queued)).status).toBe('queued');
  await b.client.cancel(ofB);
  await becomes(b.client, queued).toBe('succeeded');
  await b.client.reply(waiting, {
    interaction_id: (await b.client.interaction(waiting)).interaction_id,
    response: 'SQLite',
  });
  await becomes(b.client, waiting).toBe('succeeded');
  for (const id of [waiting, ofA, ofB, queued]) await proves(b.client, id);
});

test('a host suspended beyond its lease writes no row on waking, ends its engine and becomes a new host', async () => {
  const hosts = await withHosts({ slots: 1 });
  const a = await hosts.start('a');
  const { run_id: id } = await a.client.create({
    engine: 'rehearsal',
    prompt: '[[events 5 20]] [[sleep 3000]] [[events 2000 20]] [[done 1]]',
  });
  await becomes(a.client, id).toBe('running');
  // Before the other host starts: the engine prints again after its sleep, and the run must not end by then.
  a.child.kill('SIGSTOP');
  const b = await hosts.start('b');
  await becomes(b.client, id).toBe('failed');
  const before = await b.client.get(id);
  a.child.kill('SIGCONT');
  // It is back under another name.
  const { run_id: next } = await b.client.create({ engine: 'rehearsal', prompt: '[[hang]]' });
  await becomes(b.client, next).toBe('running');
  const { run_id: after } = await b.client.create({ engine: 'rehearsal', prompt: '[[done "again"]]' });
  await becomes(a.client, after).toBe('succeeded');
  expect(await b.client.get(id)).toEqual(before);
  await proves(b.client, id);
  await b.client.cancel(next);
});

test('any host can cancel a run that another host runs, even when that host has just died', async () => {
  const hosts = await withHosts({ slots: 1 });
  const a = await hosts.start('a');
  const { run_id: id } = await a.client.create({ engine: 'rehearsal', prompt: '[[hang]]' });
  await becomes(a.client, id).toBe('running');
  const b = await hosts.start('b');
  expect(await b.client.cancel(id)).toMatchObject({ status: 'canceled' });
  const { run_id: other } = await a.client.create({ engine: 'rehearsal', prompt: '[[hang]]' });
  await becomes(a.client, other).toBe('running');
  const [{ name } = { name: '' }] = await hosts.database.query<{ name: string }>(
    'SELECT name FROM parley.runs JOIN parley.hosts ON host_id = owner',
  );
  const [player, looker] = name === 'a' ? [a, b] : [b, a];
  player.child.kill('SIGKILL');
  expect(await looker.client.cancel(other)).toMatchObject({ status: 'canceled' });
});

test('with local files, a run continues on their host; if that never returns, it ends with the reason', async () => {
  const hosts = await withHosts({ files: 'host', goneSec: 3 });
  const a = await hosts.start('a');
  const { run_id: id } = await a.client.create({ engine: 'rehearsal', prompt: ASK, execution_mode: 'interactive' });
  const { run_id: lost } = await a.client.create({ engine: 'rehearsal', prompt: ASK, execution_mode: 'interactive' });
  for (const each of [id, lost]) await becomes(a.client, each).toBe('waiting_user');
  const b = await hosts.start('b');
  const answer = async (run: string) =>
    b.client.reply(run, { interaction_id: (await b.client.interaction(run)).interaction_id, response: 'SQLite' });
  await answer(id);
  await becomes(b.client, id).toBe('succeeded');
  const sites = await hosts.database.query<{ site: string }>('SELECT DISTINCT site FROM parley.runs');
  expect(sites).toHaveLength(1);
  // The output of the engine is visible through either host.
  expect(Buffer.from(await b.client.logs(id, { attempt: 1 })).toString()).toBe(
    Buffer.from(await a.client.logs(id, { attempt: 1 })).toString(),
  );
  await proves(b.client, id);
  a.child.kill('SIGKILL');
  await a.ended;
  await answer(lost);
  await becomes(b.client, lost).toBe('failed');
  expect(await b.client.get(lost)).toMatchObject({
    error: { code: 'SESSION_RESUME_FAILED', message: expect.stringContaining('offline for too long') as string },
  });
});

test('a resident process keeps its run on its host; after its exit any host continues it', async () => {
  const hosts = await withHosts();
  const a = await hosts.start('a');
  const { run_id: id } = await a.client.create({
    engine: 'codex-app-server',
    prompt: '[[approve ls]] [[approve pwd]] [[done 1]]',
    execution_mode: 'interactive',
  });
  await becomes(a.client, id).toBe('waiting_user');
  const b = await hosts.start('b');
  const holder = async () =>
    (
      await hosts.database.query<{ name: string }>(
        'SELECT name FROM parley.runs JOIN parley.hosts ON host_id = resident WHERE run_id = $1',
        [id],
      )
    )[0]?.name;
  expect(await holder()).toBe('a');
  const approve = async () =>
    b.client.reply(id, {
      interaction_id: (await b.client.interaction(id)).interaction_id,
      response: { decision: 'approve' },
    });
  await approve();
  await expect.poll(async () => (await b.client.get(id)).attempt_number, { timeout: 30_000 }).toBe(2);
  await becomes(b.client, id).toBe('waiting_user');
  expect(await holder()).toBe('a');
  a.child.kill('SIGKILL');
  await a.ended;
  await approve();
  await becomes(b.client, id).toBe('succeeded');
});

test('an overdue question is decided once, by any host, even when the asking host is down', async () => {
  const hosts = await withHosts();
  const a = await hosts.start('a');
  const options = { session_timeout_sec: 4, interactive_require_user_reply: false };
  const ids = await Promise.all(
    [0, 1, 2, 3].map(
      async () =>
        (
          await a.client.create({
            engine: 'rehearsal',
            prompt: ASK,
            execution_mode: 'interactive',
            runtime_options: options,
          })
        ).run_id,
    ),
  );
  for (const id of ids) await becomes(a.client, id).toBe('waiting_user');
  const answered = ids[0] ?? '';
  await a.client.reply(answered, {
    interaction_id: (await a.client.interaction(answered)).interaction_id,
    response: 'SQLite',
  });
  const b = await hosts.start('b');
  a.child.kill('SIGKILL');
  await a.ended;
  for (const id of ids.slice(1)) {
    await becomes(b.client, id).toBe('succeeded');
    const types: string[] = [];
    for await (const { type } of b.client.events(id)) types.push(type);
    expect(types.filter((type) => type === 'interaction.auto_decide.timeout')).toHaveLength(1);
  }
  await becomes(b.client, answered).toMatch(/succeeded|failed/);
});

test('a run deleted on one host loses its files on the other, and a hint alone deletes nothing', async () => {
  const hosts = await withHosts({ files: 'host' });
  const [a, b] = [await hosts.start('a'), await hosts.start('b')];
  const [kept, deleted] = await Promise.all(
    [0, 1].map(
      async () => (await a.client.create({ engine: 'rehearsal', prompt: '[[done 1]]', cwd: hosts.site.cwd })).run_id,
    ),
  );
  if (kept === undefined || deleted === undefined) throw new Error('two runs were started');
  for (const id of [kept, deleted]) await becomes(b.client, id).toBe('succeeded');
  const folder = (id: string) => join(hosts.site.root, 'data-a', 'runs', id);
  await hosts.database.query('SELECT pg_notify($1, $2)', [
    'parley_commits',
    JSON.stringify({ i: 'x', h: null, r: kept, x: true }),
  ]);
  await hosts.database.query('SELECT pg_notify($1, $2)', [
    'parley_commits',
    JSON.stringify({ i: 'x', h: null, r: '../../work', x: true }),
  ]);
  expect(existsSync(folder(deleted))).toBe(true);
  await b.client.delete(deleted);
  await expect.poll(() => existsSync(folder(deleted))).toBe(false);
  expect([existsSync(folder(kept)), existsSync(hosts.site.cwd)]).toEqual([true, true]);
  expect(await b.client.logs(kept)).toEqual(await a.client.logs(kept));
});

test('with local files, a run canceled on another host before it started can be verified on either', async () => {
  const hosts = await withHosts({ files: 'host', slots: 1 });
  const a = await hosts.start('a');
  const { run_id: hanging } = await a.client.create({ engine: 'rehearsal', prompt: '[[hang]]' });
  await becomes(a.client, hanging).toBe('running');
  const { run_id: id } = await a.client.create({ engine: 'rehearsal', prompt: '[[done 1]]' });
  const b = await hosts.start('b');
  expect(await b.client.cancel(id)).toMatchObject({ status: 'canceled' });
  for (const { client } of [b, a]) await proves(client, id);
  await b.client.cancel(hanging);
});

test('a database outage of seconds ends no turn: output printed meanwhile is stored when it is back', async () => {
  const hosts = await withHosts({ leaseSec: 15 });
  const proxy = await openPostgresProxy(hosts.database.url);
  onTestFinished(() => proxy.close());
  const a = await hosts.start('a', { url: proxy.url });
  const { run_id: id } = await a.client.create({
    engine: 'rehearsal',
    prompt: `${'[[events 20 60]] [[sleep 1000]] '.repeat(12)} [[done 1]]`,
  });
  const stored = async () =>
    (await hosts.database.query<{ seq: number }>('SELECT rasp_seq::int AS seq FROM parley.runs'))[0]?.seq ?? 0;
  const printed = () =>
    hosts
      .foldersOf(id)
      .map((folder) => join(folder, 'attempts', '1', 'stdout.log'))
      .filter((path) => existsSync(path))
      .flatMap((path) => readFileSync(path, 'utf8').split('\n')).length;
  // Others see that it is running before the host knows that it has started: it prints when it knows.
  await expect.poll(printed, { timeout: 20_000 }).toBeGreaterThan(1);
  proxy.shut();
  const lines = printed();
  // Notifications in transit have arrived by then.
  await expect.poll(printed, { timeout: 20_000 }).toBeGreaterThan(lines + 15);
  const before = await stored();
  // It keeps printing, and none of it can be stored.
  await expect.poll(printed, { timeout: 20_000 }).toBeGreaterThan(lines + 60);
  expect(await stored()).toBe(before);
  proxy.open();
  await becomes(a.client, id).toBe('succeeded');
  expect(await stored()).toBeGreaterThan(240);
  await proves(a.client, id);
});
