// The command line with servers that share a database: it finds one through the database, registers its own token, and
// needs no file of theirs.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { openToWrite } from '../../src/cli/open-data.js';
import { readVersion } from '../../src/cli/version.js';
import { DEFAULT_SETTINGS, type Settings } from '../../src/settings/settings.js';
import { lockDataDir } from '../../src/store/sqlite/data-dir.js';
import { expectLines, parley, start, type Ended } from '../support/command.js';
import { TOKEN, withHosts, type Hosts, type HostsOptions } from '../support/hosts.js';
import { createIo } from '../support/io.js';
import { openPostgresProxy } from '../support/postgres-proxy.js';

const ASK = '[[ask Which database? | Postgres | SQLite]] [[done "ok"]]';

interface Beside extends Hosts {
  // A command of a user with their own data directory, unless another is named.
  readonly env: Readonly<Record<string, string>>;
  call(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ended>;
  hostCount(): Promise<number>;
}

async function besideHosts(options: HostsOptions = {}): Promise<Beside> {
  const hosts = await withHosts(options);
  const data = join(hosts.site.root, 'data-of-the-caller');
  mkdirSync(data);
  writeFileSync(
    join(data, 'config.json'),
    JSON.stringify({ cluster: { files: options.files ?? 'shared', lease_sec: 3 } }),
  );
  const env = { PARLEY_DATA: data, PARLEY_DATABASE_URL: hosts.database.url, HOSTNAME: 'elsewhere' };
  return {
    ...hosts,
    env,
    call: (args, more = {}) => parley(hosts.site, args, { env: { ...env, ...more } }),
    // A command that does the work itself is one more.
    hostCount: async () => (await hosts.database.query('SELECT FROM parley.hosts')).length,
  };
}

const ioOn = (url: string, env: Readonly<Record<string, string>> = {}) =>
  createIo(
    { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() },
    { env: { PARLEY_DATABASE_URL: url, ...env } },
  );

const deadHost = (hosts: Hosts, name: string, url: string) =>
  hosts.database.query(
    `INSERT INTO parley.hosts
       (host_id, name, started_at, lease_until, url, info_json, site, place, token_sha256, public_key, generation)
     VALUES ($1, $1, '2026-01-01', clock_timestamp() + interval '1 hour', $2, '{}', $1, '/gone', '', '', 5)`,
    [name, url],
  );

test.each(['shared', 'host'] as const)(
  'files %s: commands use a server of another data directory without a token',
  async (files) => {
    const hosts = await besideHosts({ files });
    const { call, hostCount } = hosts;
    await hosts.start('a', { token: null });
    const asked = await call(['run', 'rehearsal', ASK, '-i', '--json']);
    expect(asked, asked.stderr).toMatchObject({ code: 3 });
    const { run } = expectLines(asked.stdout).at(-1) as { run: { run_id: string } };
    expect((await call(['ls', '--status', 'waiting_user', '--quiet'])).stdout.trim()).toBe(run.run_id);
    // Another host runs it: that is no reason to stop watching it.
    const watching = start(hosts.site, ['watch', 'last', '--json'], { env: hosts.env });
    await watching.waitFor('user.input.required');
    expect(await call(['reply', 'last', '2'])).toMatchObject({ code: 0 });
    expect(await watching.ended).toMatchObject({ code: 0, stderr: '' });
    const hanging = await call(['run', 'rehearsal', '[[hang]]', '--detach', '--scratch']);
    expect(hanging, hanging.stderr).toMatchObject({ code: 0 });
    expect(await call(['cancel', 'last'])).toMatchObject({ code: 0, stdout: `canceled ${hanging.stdout.trim()}\n` });
    expect(await call(['rm', run.run_id])).toMatchObject({ code: 0 });
    expect(await hostCount()).toBe(1);
    // With shared files, no server belongs to the directory.
    expect(
      existsSync(join(files === 'shared' ? hosts.site.data : join(hosts.site.root, 'data-a'), 'server.json')),
    ).toBe(files === 'host');
  },
);

test('with local files, a server is found from its directory even if the hosts table lacks its address', async () => {
  const hosts = await besideHosts({ files: 'host' });
  const a = await hosts.start('a', { token: null });
  await hosts.database.query('UPDATE parley.hosts SET url = NULL');
  const env = { PARLEY_DATA: join(hosts.site.root, 'data-a') };
  expect(await hosts.call(['run', 'rehearsal', '[[done 1]]'], env)).toMatchObject({ code: 0 });
  expect(await hosts.hostCount()).toBe(1);
  // Another one on the same files is refused.
  const second = await hosts.call(['serve', '--port', '0'], env);
  expect(second).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`${a.url} (process ${a.child.pid})`) as string,
  });
});

test('a dead host is skipped; a host on this machine is preferred, then one with the same files', async () => {
  const hosts = await besideHosts({ files: 'host' });
  await deadHost(hosts, 'elsewhere', 'http://127.0.0.1:1');
  const [a, b] = [await hosts.start('a'), await hosts.start('b')];
  // A server that receives a wrong token reports it.
  const asks = async (env: Record<string, string>) =>
    /The server at (\S+)/.exec((await hosts.call(['run', 'rehearsal', '[[done 1]]'], env)).stderr)?.[1];
  expect(await asks({ HOSTNAME: 'b' })).toBe(b.url);
  expect(await asks({ HOSTNAME: 'a' })).toBe(a.url);
  writeFileSync(join(hosts.env['PARLEY_DATA'] ?? '', 'site'), readFileSync(join(hosts.site.root, 'data-b', 'site')));
  expect(await asks({})).toBe(b.url);
  expect(await asks({ HOSTNAME: 'a' })).toBe(a.url);
  rmSync(join(hosts.env['PARLEY_DATA'] ?? '', 'site'));
  expect([a.url, b.url]).toContain(await asks({}));
  for (const { child } of [a, b]) child.kill('SIGKILL');
  await Promise.all([a.ended, b.ended]);
  expect(await hosts.hostCount()).toBe(3);
  // Still listed, but unreachable: the command does the work itself.
  expect(await hosts.call(['run', 'rehearsal', '[[done 1]]'])).toMatchObject({ code: 0 });
  expect(await hosts.hostCount()).toBe(4);
});

test('a token that the servers were started with is needed, and an error says which', async () => {
  const hosts = await besideHosts();
  const a = await hosts.start('a');
  const args = ['run', 'rehearsal', '[[done 1]]'];
  expect(await hosts.call(args)).toMatchObject({
    code: 1,
    stderr:
      `parley: The server at ${a.url} does not know the token of this data directory. Set PARLEY_TOKEN to ` +
      `the token that it was started with.\n`,
  });
  expect(await hosts.call(args, { PARLEY_TOKEN: 'prl_of-something-else' })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('or unset it if the server was started without one') as string,
  });
  expect(await hosts.call(args, { PARLEY_TOKEN: TOKEN })).toMatchObject({ code: 0 });
  expect(await hosts.hostCount()).toBe(1);
});

test('an unprepared or unreachable database is reported before anything is started', async () => {
  const hosts = await besideHosts();
  await hosts.database.query(`UPDATE parley.meta SET value = '0' WHERE key = 'version'`);
  const args = ['run', 'rehearsal', '[[done 1]]'];
  expect(await hosts.call(args)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('parley migrate') as string,
  });
  expect(await hosts.call(args, { PARLEY_DATABASE_URL: 'postgresql://u:geheim@127.0.0.1:1/d' })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^parley: The database d at 127\.0\.0\.1:1 cannot be reached: (?!.*geheim)/,
    ) as string,
  });
  expect(await hosts.call(args, { PARLEY_DATABASE_URL: 'postgresql://u:geheim%@127.0.0.1:1/d' })).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^parley: (?!.*geheim).*%25\.\n$/) as string,
  });
});

test('a server without its database in time is alive, not ready, says why, and recovers as another host', async () => {
  const hosts = await withHosts({ leaseSec: 2 });
  const proxy = await openPostgresProxy(hosts.database.url);
  onTestFinished(() => proxy.close());
  const a = await hosts.start('a', { url: proxy.url, token: null });
  const ask = async (path: string) => {
    const response = await fetch(`${a.url}${path}`);
    return {
      status: response.status,
      body: (await response.json()) as { host_id?: string; error?: { message: string } },
    };
  };
  const before = await ask('/readyz');
  expect(before).toMatchObject({
    status: 200,
    body: { status: 'ok', host_id: expect.stringMatching(/^host_/) as string },
  });
  proxy.shut();
  await expect
    .poll(() => ask('/readyz'), { timeout: 20_000 })
    .toMatchObject({
      status: 503,
      body: { error: { code: 'STORE_UNAVAILABLE', message: expect.stringContaining('lost its lease') as string } },
    });
  expect(await ask('/healthz')).toEqual({ status: 200, body: { status: 'ok' } });
  proxy.open();
  await expect.poll(async () => (await ask('/readyz')).status, { timeout: 20_000 }).toBe(200);
  expect((await ask('/readyz')).body.host_id).not.toBe(before.body.host_id);
});

test('watching runs whose last host died continues them: running ones are ended, queued ones are run', async () => {
  const hosts = await besideHosts({ slots: 1 });
  const a = await hosts.start('a', { token: null });
  const run = (prompt: string) =>
    start(hosts.site, ['run', 'rehearsal', prompt, '--scratch', '--json'], {
      env: { ...hosts.env, PARLEY_DATA: hosts.site.data },
    });
  const statuses = async () =>
    (await hosts.database.query<{ status: string }>('SELECT status FROM parley.runs ORDER BY run_id')).map(
      ({ status }) => status,
    );
  const running = run('[[hang]]');
  await expect.poll(statuses, { timeout: 30_000 }).toEqual(['running']);
  const queued = run('[[done 1]]');
  await expect.poll(statuses, { timeout: 30_000 }).toEqual(['running', 'queued']);
  // Both are being watched: the server has sent the run ids to the commands.
  for (const each of [running, queued]) await each.waitFor('conversation.');
  a.child.kill('SIGKILL');
  const [first, second] = await Promise.all([running.ended, queued.ended]);
  expect({ code: first.code, last: expectLines(first.stdout).at(-1) }, `${first.stderr}${second.stderr}`).toMatchObject(
    { code: 1, last: { run: { status: 'failed', error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' } } } },
  );
  expect(
    { code: second.code, last: expectLines(second.stdout).at(-1) },
    `${second.stderr}${first.stderr}`,
  ).toMatchObject({ code: 0, last: { run: { status: 'succeeded' } } });
});

test('a host is named after its machine or HOSTNAME, reports its settings, and limits its connections', async () => {
  const { database, site } = await withHosts();
  mkdirSync(site.data);
  const settings: Settings = { ...DEFAULT_SETTINGS, cluster: { ...DEFAULT_SETTINGS.cluster, connections: 2 } };
  for (const [env, name] of [
    [{}, 'desk'],
    [{ HOSTNAME: 'attic' }, 'attic'],
  ] as const) {
    const { data } = await openToWrite(site.data, ioOn(database.url, env), {
      settings,
      serves: true,
      log: { error: () => {} },
    });
    try {
      await Promise.all(Array.from({ length: 20 }, () => data.store.countRuns()));
      // In addition, one listens and one renews the lease. One of them may still be connecting.
      await expect
        .poll(
          async () =>
            (
              await database.query(
                `SELECT FROM pg_stat_activity WHERE application_name = 'parley' AND datname = current_database()`,
              )
            ).length,
          { timeout: 5000 },
        )
        .toBe(4);
      expect(
        await database.query(
          'SELECT name, info_json::json AS info FROM parley.hosts WHERE lease_until > clock_timestamp()',
        ),
      ).toEqual([
        { name, info: { version: readVersion(), files: 'host', lease_sec: 15, serves: true, engines: ['rehearsal'] } },
      ]);
    } finally {
      await data.close();
      // It names a process that is not ours and must not be ended.
      rmSync(join(site.data, 'writer.json'), { force: true });
    }
    await expect
      .poll(
        () =>
          database.query(
            `SELECT FROM pg_stat_activity WHERE application_name = 'parley' AND datname = current_database()`,
          ),
        { timeout: 5000 },
      )
      .toEqual([]);
  }
});

test.each(['shared', 'host'] as const)(
  'files %s: a host that cannot join leaves neither a lock nor a connection behind',
  async (files) => {
    const { database, site } = await withHosts();
    await database.query('ALTER TABLE parley.hosts ADD CONSTRAINT nobody CHECK (false)');
    mkdirSync(site.data);
    await expect(
      openToWrite(site.data, ioOn(database.url), {
        settings: { ...DEFAULT_SETTINGS, cluster: { ...DEFAULT_SETTINGS.cluster, files } },
        serves: true,
        log: { error: () => {} },
      }),
    ).rejects.toThrow('nobody');
    const release = await lockDataDir(site.data, { pid: process.pid });
    release();
    // A server needs some time to notice a closed connection, but not the ten seconds for which an idle one is kept.
    await expect
      .poll(
        () =>
          database.query(
            'SELECT query FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
          ),
        { timeout: 5000 },
      )
      .toEqual([]);
  },
);

test('the demonstration uses its own folder, whatever hosts share', async () => {
  const hosts = await besideHosts();
  const { code, stderr } = await hosts.call(['demo']);
  expect(code, stderr).toBe(0);
  expect(await hosts.hostCount()).toBe(0);
});
