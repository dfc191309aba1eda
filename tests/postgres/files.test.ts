// Hosts with local files in directories of different names: access to files on another host, and a host that returns
// after an absence.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listMarked } from '../../src/process/process-table.js';
import { parley } from '../support/command.js';
import { becomes, proves, withHosts, type Hosts } from '../support/hosts.js';

const folderOf = ({ site }: Hosts, name: string, id: string) => join(site.root, `data-${name}`, 'runs', id);

test('a run is continued, copied and retried through a host without its files, and runs where they are', async () => {
  const hosts = await withHosts({ files: 'host', slots: 1 });
  const a = await hosts.start('a');
  const { run_id: first } = await a.client.create({ engine: 'codex', prompt: '[[answer one]]' });
  await becomes(a.client, first).toBe('succeeded');
  // A run that has a folder and no session: it never started.
  const { run_id: hanging } = await a.client.create({ engine: 'codex', prompt: '[[hang]]' });
  const { run_id: unbegun } = await a.client.create({
    engine: 'codex',
    prompt: '[[answer four]]',
    cwd: hosts.site.cwd,
  });
  for (const id of [unbegun, hanging]) expect(await a.client.cancel(id)).toMatchObject({ status: 'canceled' });
  const b = await hosts.start('b');
  const copied = await b.client.fork(first, { prompt: '[[answer two]]' });
  await becomes(b.client, copied.run_id).toBe('succeeded');
  const continued = await b.client.continueFrom(first, { prompt: '[[answer three]]' });
  const again = await b.client.retry(unbegun);
  await becomes(b.client, continued.run_id).toBe('succeeded');
  await becomes(b.client, again.run_id).toBe('succeeded');
  expect((await b.client.get(again.run_id)).cwd).toBe(realpathSync(hosts.site.cwd));
  for (const { run_id: id } of [copied, continued, again]) {
    expect([existsSync(folderOf(hosts, 'a', id)), existsSync(folderOf(hosts, 'b', id))]).toEqual([true, false]);
    await proves(b.client, id);
  }
});

test('a process waiting on another host ends with its run: no later output, and the earlier one is kept', async () => {
  const hosts = await withHosts({ files: 'host' });
  const a = await hosts.start('a');
  const { run_id: id } = await a.client.create({
    engine: 'codex-app-server',
    prompt: '[[approve ls]] [[done 1]]',
    execution_mode: 'interactive',
  });
  await becomes(a.client, id).toBe('waiting_user');
  const b = await hosts.start('b');
  const processes = () => listMarked().filter(({ mark }) => mark?.startsWith(`${id}/`));
  expect(processes()).not.toEqual([]);
  expect(await b.client.cancel(id)).toMatchObject({ status: 'canceled' });
  expect(processes()).toEqual([]);
  expect(
    await hosts.database.query('SELECT epoch::int, cancel_requested_json IS NOT NULL AS wished FROM parley.runs'),
  ).toEqual([{ epoch: 1, wished: true }]);
  await proves(b.client, id);
});

test('a run waiting on a dead host is canceled by another; its logs are kept as far as read', async () => {
  const hosts = await withHosts({ files: 'host', goneSec: 60 });
  const a = await hosts.start('a');
  const { run_id: id } = await a.client.create({
    engine: 'codex-app-server',
    prompt: '[[approve ls]] [[done 1]]',
    execution_mode: 'interactive',
  });
  await becomes(a.client, id).toBe('waiting_user');
  const b = await hosts.start('b');
  a.child.kill('SIGKILL');
  await a.ended;
  expect(await b.client.cancel(id)).toMatchObject({ status: 'canceled' });
  expect(await hosts.database.query('SELECT epoch::int FROM parley.runs')).toEqual([{ epoch: 2 }]);
  await hosts.start('a');
  await proves(b.client, id);
  await expect.poll(() => listMarked().filter(({ mark }) => mark?.startsWith(`${id}/`))).toEqual([]);
});

test('a host that was away removes the files of runs that were deleted meanwhile, and only those', async () => {
  const hosts = await withHosts({ files: 'host' });
  const a = await hosts.start('a');
  const ids = await Promise.all(
    [0, 1, 2].map(async () => (await a.client.create({ engine: 'rehearsal', prompt: '[[done 1]]' })).run_id),
  );
  for (const id of ids) await becomes(a.client, id).toBe('succeeded');
  const b = await hosts.start('b');
  a.child.kill('SIGKILL');
  await a.ended;
  const [kept = '', ...deleted] = ids;
  for (const id of deleted) await b.client.delete(id);
  expect(readdirSync(join(hosts.site.root, 'data-a', 'runs')).toSorted()).toEqual(ids.toSorted());
  expect(await hosts.database.query('SELECT FROM parley.leftovers')).toHaveLength(2);
  await hosts.start('a');
  await expect.poll(() => readdirSync(join(hosts.site.root, 'data-a', 'runs'))).toEqual([kept]);
  await expect.poll(() => hosts.database.query('SELECT FROM parley.leftovers')).toEqual([]);
  await proves(b.client, kept);
});

test('a queued run whose paths no host has any more is ended, and says why', async () => {
  const hosts = await withHosts({ files: 'host', goneSec: 3, slots: 1 });
  const a = await hosts.start('a');
  const { run_id: hanging } = await a.client.create({ engine: 'rehearsal', prompt: '[[hang]]' });
  await becomes(a.client, hanging).toBe('running');
  const { run_id: queued } = await a.client.create({ engine: 'rehearsal', prompt: '[[done 1]]' });
  const b = await hosts.start('b');
  a.child.kill('SIGKILL');
  await a.ended;
  for (const id of [hanging, queued]) {
    await becomes(b.client, id).toBe('failed');
    expect(await b.client.get(id)).toMatchObject({ error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' } });
  }
  expect((await b.client.get(queued)).error?.message).toContain('data directory of the run');
});

test('after all hosts were away for longer than that, an answered run waits for the host with its files', async () => {
  const hosts = await withHosts({ files: 'host', goneSec: 8 });
  const [a, b] = [await hosts.start('a'), await hosts.start('b')];
  const { run_id: id } = await a.client.create({
    engine: 'rehearsal',
    prompt: '[[ask Which? | this]] [[done 1]]',
    execution_mode: 'interactive',
    cwd: hosts.site.cwd,
  });
  await becomes(a.client, id).toBe('waiting_user');
  a.child.kill('SIGKILL');
  await a.ended;
  await b.client.reply(id, { interaction_id: (await b.client.interaction(id)).interaction_id, response: 'this' });
  b.child.kill('SIGKILL');
  await b.ended;
  // A day later.
  await hosts.database.query(`UPDATE parley.hosts SET lease_until = lease_until - interval '1 day'`);
  await hosts.database.query('UPDATE parley.runs SET queued_at = queued_at - 86400000');
  const again = await hosts.start('b');
  const leased = async () =>
    (
      await hosts.database.query<{ until: number }>(
        `SELECT max(extract(epoch FROM lease_until))::float AS until FROM parley.hosts`,
      )
    )[0]?.until ?? 0;
  // It has renewed its lease twice, and checked the leftovers of other hosts as often.
  const before = await leased();
  await expect.poll(leased, { timeout: 20_000 }).toBeGreaterThan(before + 1.5);
  expect((await again.client.get(id)).status).toBe('queued');
  await hosts.start('a');
  await becomes(again.client, id).toBe('succeeded');
});

test('an engine left running by a dead host is ended there before its deleted run loses its files', async () => {
  const hosts = await withHosts({ files: 'host' });
  const a = await hosts.start('a');
  const { run_id: id } = await a.client.create({ engine: 'rehearsal', prompt: '[[hang]]' });
  await becomes(a.client, id).toBe('running');
  const b = await hosts.start('b');
  a.child.kill('SIGKILL');
  await a.ended;
  await becomes(b.client, id).toBe('failed');
  // Replaces the engine on the machine of a: b, which is on the same machine here, has ended the real one.
  const engine = spawn('sleep', ['600'], {
    env: { PATH: process.env['PATH'] ?? '', PARLEY_TURN: `${id}/1` },
    detached: true,
    stdio: 'ignore',
  });
  const exit = once(engine, 'exit');
  await b.client.delete(id);
  await hosts.start('a');
  await exit;
  await expect.poll(() => existsSync(folderOf(hosts, 'a', id))).toBe(false);
  await expect.poll(() => hosts.database.query('SELECT FROM parley.leftovers')).toEqual([]);
});

test('a server that cannot listen begins nothing', async () => {
  const hosts = await withHosts({ slots: 1 });
  const a = await hosts.start('a');
  const { run_id: hanging } = await a.client.create({ engine: 'rehearsal', prompt: '[[hang]]' });
  await becomes(a.client, hanging).toBe('running');
  const { run_id: queued } = await a.client.create({ engine: 'rehearsal', prompt: '[[done 1]]' });
  const env = { ...hosts.site.env, PARLEY_DATABASE_URL: hosts.database.url, HOSTNAME: 'b' };
  expect(await parley({ ...hosts.site, env }, ['serve', '--port', String(a.port)])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(String(a.port)) as string,
  });
  expect(await hosts.database.query('SELECT status, reserved_by FROM parley.runs WHERE run_id = $1', [queued])).toEqual(
    [{ status: 'queued', reserved_by: null }],
  );
  await a.client.cancel(hanging);
  await becomes(a.client, queued).toBe('succeeded');
});

test('a run whose host died in turn 1 is retried in its session at its files; unread logs prove nothing', async () => {
  const hosts = await withHosts({ files: 'host', goneSec: 60 });
  const a = await hosts.start('a');
  const { run_id: id } = await a.client.create({ engine: 'codex', prompt: '[[answer begun]] [[hang]]' });
  await expect
    .poll(
      async () =>
        (
          await hosts.database.query<{ found: boolean }>(
            `SELECT EXISTS (
               SELECT
               FROM parley.segments
               WHERE run_id = $1 AND strpos(convert_from(body, 'UTF8'), 'lifecycle.session.bound') > 0
             ) AS found`,
            [id],
          )
        )[0]?.found,
      { timeout: 20_000 },
    )
    .toBe(true);
  const b = await hosts.start('b');
  a.child.kill('SIGKILL');
  await a.ended;
  await becomes(b.client, id).toBe('failed');
  const again = await b.client.retry(id);
  expect(again).toMatchObject({ continue_from: id, status: 'queued' });
  await hosts.start('a');
  await expect.poll(() => existsSync(folderOf(hosts, 'a', again.run_id)), { timeout: 20_000 }).toBe(true);
  expect(existsSync(folderOf(hosts, 'b', again.run_id))).toBe(false);
  await b.client.cancel(again.run_id);
  await proves(b.client, id);
  expect((await b.client.verify(id)).checks.find(({ name }) => name === 'hashes')?.finding).toContain(
    'the logs of turn 1 cannot be checked',
  );
});

const lines = ({ stdout }: { stdout: string }) =>
  stdout.split('\n').filter((line) => line.includes('everything is as it was written')).length;

test('verify --all checks the local files and reports how many are elsewhere', async () => {
  const hosts = await withHosts({ files: 'host' });
  const [a, b] = [await hosts.start('a'), await hosts.start('b')];
  const ids = await Promise.all(
    [a, a, b].map(
      async ({ client }) =>
        (await client.create({ engine: 'rehearsal', prompt: '[[done 1]]', cwd: hosts.site.cwd })).run_id,
    ),
  );
  for (const id of ids) await proves(a.client, id);
  const verify = (name: string) =>
    parley({ ...hosts.site, env: { ...hosts.site.env, PARLEY_DATABASE_URL: hosts.database.url } }, [
      'verify',
      '--all',
      '--data',
      join(hosts.site.root, `data-${name}`),
    ]);
  const [there, here] = [await verify('a'), await verify('b')];
  expect([there, here].map((each) => [each.code, lines(each), each.stderr])).toEqual([
    [0, 2, '1 run was not checked: its files are on another host or missing\n'],
    [0, 1, '2 runs were not checked: their files are on another host or missing\n'],
  ]);
});
