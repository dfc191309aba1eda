// A PostgreSQL database of an earlier version is brought up to date by parley migrate; that of version 1 with the jobs
// that it kept in the schema graphile_worker.
import { createHmac } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createSite, parley, type Site } from '../support/command.js';
import { withDatabase, type TestDatabase } from '../support/postgres.js';
import { startServer } from '../support/served-process.js';
import { expectUpgradedFrom5, expectUpgradedFrom9 } from '../support/expect-upgraded.js';
import { putOldDatabase, UPGRADE_FIXTURES } from '../support/upgrade-fixture.js';

// The versions of the fixtures.
const OLDEST = 1;
const PREVIOUS = 6;

interface Upgrade {
  readonly site: Site;
  readonly database: TestDatabase;
  readonly env: Record<string, string>;
}

async function withOldDatabase(version: number): Promise<Upgrade> {
  const fixture = UPGRADE_FIXTURES.find(({ versions }) => versions.postgres === version);
  if (fixture === undefined) throw new Error(`no fixture of version ${version}`);
  const site = createSite();
  const database = await withDatabase({ empty: true });
  onTestFinished(() => database.drop());
  await database.query(putOldDatabase(fixture, site));
  await database.query('RESET ALL');
  writeFileSync(join(site.data, 'config.json'), JSON.stringify({ cluster: { files: 'shared', lease_sec: 3 } }));
  // The place of the shared files is where they are now.
  await database.query('UPDATE parley.runs SET place = $1', [site.data]);
  await putJournals(site, database);
  return { site, database, env: { PARLEY_DATABASE_URL: database.url, HOSTNAME: 'new-host' } };
}

// The journals as files, which are not kept in the repository: the database has the same bytes.
async function putJournals({ data }: Site, database: TestDatabase): Promise<void> {
  const journals = await database.query<{ run_id: string; protocol: string; bytes: Buffer }>(
    `SELECT run_id, protocol, string_agg(body, ''::bytea ORDER BY seq_from) AS bytes FROM parley.segments
      GROUP BY run_id, protocol`,
  );
  for (const { run_id: runId, protocol, bytes } of journals) {
    mkdirSync(join(data, 'runs', runId), { recursive: true, mode: 0o700 });
    writeFileSync(join(data, 'runs', runId, `${protocol}.jsonl`), bytes);
  }
}

const jobs = (database: TestDatabase) =>
  database.query<{ task_identifier: string }>('SELECT task_identifier FROM graphile_worker.jobs ORDER BY 1');

test('a database of version 1 is upgraded: waiting runs can be answered, old jobs are deleted', async () => {
  const { site, database, env } = await withOldDatabase(OLDEST);
  expect((await jobs(database)).map((job) => job.task_identifier)).toEqual([
    'parley_decide',
    'parley_decide',
    'send_mail',
  ]);
  const early = await parley(site, ['serve', '--port', '0'], { env });
  expect(early).toMatchObject({ code: 1, stderr: expect.stringContaining('Run "parley migrate"') as string });
  const [old] = await database.query<{ value: string }>(`SELECT value FROM parley.meta WHERE key = 'secret'`);
  const migrated = await parley(site, ['migrate'], { env });
  expect(migrated).toMatchObject({ code: 0, stderr: '' });
  expect(
    (await database.query<{ key: string }>('SELECT key FROM parley.meta ORDER BY key')).map(({ key }) => key),
  ).toEqual(['database_id', 'version']);
  expect(migrated.stdout).toBe(
    'the database is ready\nDeleted 2 jobs of an earlier Parley from the schema graphile_worker.\n' +
      'Other programs use this schema (tasks: send_mail). Keep it.\n',
  );
  expect((await jobs(database)).map((job) => job.task_identifier)).toEqual(['send_mail']);
  const server = await startServer(site, ['--port', '0'], { env });
  await expectUpgradedFrom5(server, { isShared: true });
  // Tokens that the previous version derived from its secret are no longer valid; the operator's is in the file.
  const meAs = async (token: string) =>
    (await fetch(`${server.url}/v1/me`, { headers: { authorization: `Bearer ${token}` } })).status;
  for (const purpose of ['operator', 'hosts', 'proof'])
    expect(
      await meAs(
        `prl_${createHmac('sha256', old?.value ?? '')
          .update(purpose)
          .digest('base64url')}`,
      ),
      purpose,
    ).toBe(401);
  expect(await meAs(readFileSync(join(site.data, 'token'), 'utf8').trim())).toBe(200);
  // Nothing new is put there, and nothing of others is touched.
  expect((await jobs(database)).map((job) => job.task_identifier)).toEqual(['send_mail']);
  expect(await database.query('SELECT name, role FROM parley.tokens')).toEqual([{ name: 'ann', role: 'replier' }]);
  expect(await database.query('SELECT delivery_id FROM parley.deliveries')).not.toEqual([]);
});

test('migrate prints the statement that drops the old schema where nobody else uses it, and it is safe', async () => {
  const { site, database, env } = await withOldDatabase(OLDEST);
  await database.query(
    `DELETE FROM graphile_worker._private_jobs;
     DELETE FROM graphile_worker._private_tasks WHERE identifier <> 'parley_decide'`,
  );
  const { stdout } = await parley(site, ['migrate'], { env });
  expect(stdout).toContain('Deleted 0 jobs');
  expect(stdout).toContain('once no other program uses it and no earlier Parley will run on this database again');
  const [, drop = ''] = /^ {2}(DROP SCHEMA .*;)$/m.exec(stdout) ?? [];
  await database.query(drop);
  expect(await parley(site, ['migrate'], { env })).toMatchObject({ code: 0, stdout: 'the database is ready\n' });
  const server = await startServer(site, ['--port', '0'], { env });
  await expectUpgradedFrom5(server, { isShared: true });
});

test('a database of the previous version is upgraded: waiting runs are answered, and all runs verify', async () => {
  const { site, database, env } = await withOldDatabase(PREVIOUS);
  // As a host of that version asks another host to cancel a run: no event records it.
  await database.query(
    `UPDATE parley.runs SET cancel_requested_json = '{"at":1795032818633,"actor":null}' WHERE request_id = 'running'`,
  );
  expect(await parley(site, ['migrate'], { env })).toMatchObject({ code: 0, stdout: 'the database is ready\n' });
  const server = await startServer(site, ['--port', '0'], { env });
  await expectUpgradedFrom9(server, { isShared: true });
  server.child.kill('SIGTERM');
  expect(await server.ended).toMatchObject({ code: 0 });
  expect(await parley(site, ['verify', '--all'], { env })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('all intact') as string,
  });
  expect(await parley(site, ['audit', '--verify'], { env })).toMatchObject({ code: 0 });
});

test.each([OLDEST, PREVIOUS])('hosts of version %i and of this one never share a database', async (version) => {
  const { site, database, env } = await withOldDatabase(version);
  const readVersion = async () =>
    Number((await database.query<{ value: string }>(`SELECT value FROM parley.meta WHERE key = 'version'`))[0]?.value);
  // One that is still alive: its lease is renewed by nobody here.
  await database.query(`UPDATE parley.hosts SET lease_until = clock_timestamp() + interval '1 hour'`);
  const refused = await parley(site, ['migrate'], { env });
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Stop them and run "parley migrate" again') as string,
  });
  expect(refused.stderr).toContain('old-host');
  expect(await readVersion()).toBe(version);
  if (version === OLDEST) expect(await jobs(database)).toHaveLength(3);
  // It is stopped, and comes back after the migration.
  await database.query('UPDATE parley.hosts SET lease_until = clock_timestamp()');
  const [columns] = await database.query<{ names: string }>(
    `SELECT string_agg(quote_ident(column_name), ', ') AS names FROM information_schema.columns
      WHERE table_schema = 'parley' AND table_name = 'hosts' AND column_name <> 'host_id'`,
  );
  expect(await parley(site, ['migrate'], { env })).toMatchObject({ code: 0 });
  const again = `INSERT INTO parley.hosts (host_id, ${columns?.names ?? ''})
    SELECT 'again', ${columns?.names ?? ''} FROM parley.hosts LIMIT 1`;
  await expect(database.query(again)).rejects.toThrow(/violates (?:not-null|check) constraint/);
  // What that version compares with its own: it refuses.
  expect(await readVersion()).toBeGreaterThan(version);
});
