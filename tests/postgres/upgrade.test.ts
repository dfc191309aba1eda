// A PostgreSQL database of the previous version, with the jobs that it kept in the schema graphile_worker, is migrated
// by parley migrate.
import { createHmac } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createSite, parley, type Site } from '../support/command.js';
import { withDatabase, type TestDatabase } from '../support/postgres.js';
import { startServer } from '../support/served-process.js';
import { expectUpgraded, putOldDatabase } from '../support/upgrade-fixture.js';

const PREVIOUS = 1;

async function withOldDatabase(): Promise<{ site: Site; database: TestDatabase; env: Record<string, string> }> {
  const site = createSite();
  const database = await withDatabase({ empty: true });
  onTestFinished(() => database.drop());
  await database.query(putOldDatabase(site));
  await database.query('RESET ALL');
  writeFileSync(join(site.data, 'config.json'), JSON.stringify({ cluster: { files: 'shared', lease_sec: 3 } }));
  // The shared files are in another place now.
  await database.query('UPDATE parley.runs SET place = $1', [site.data]);
  return { site, database, env: { PARLEY_DATABASE_URL: database.url, HOSTNAME: 'new-host' } };
}

const jobs = (database: TestDatabase) =>
  database.query<{ task_identifier: string }>('SELECT task_identifier FROM graphile_worker.jobs ORDER BY 1');

test('a database of the previous version is upgraded: waiting runs can be answered, old jobs are deleted', async () => {
  const { site, database, env } = await withOldDatabase();
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
  await expectUpgraded(server, { isShared: true });
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
  // Nothing new is written there, and nothing of others is touched.
  expect((await jobs(database)).map((job) => job.task_identifier)).toEqual(['send_mail']);
  expect(await database.query('SELECT name, role FROM parley.tokens')).toEqual([{ name: 'ann', role: 'replier' }]);
  expect(await database.query('SELECT delivery_id FROM parley.deliveries')).not.toEqual([]);
});

test('migrate prints the statement that drops the old schema where nobody else uses it, and it is safe', async () => {
  const { site, database, env } = await withOldDatabase();
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
  await expectUpgraded(server, { isShared: true });
});

test('hosts of the previous version and of this one never share a database', async () => {
  const { site, database, env } = await withOldDatabase();
  // One that is still alive: no process here renews its lease.
  await database.query(`UPDATE parley.hosts SET lease_until = clock_timestamp() + interval '1 hour'`);
  const refused = await parley(site, ['migrate'], { env });
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Stop them and run "parley migrate" again') as string,
  });
  expect(refused.stderr).toContain('old-host');
  expect(await database.query(`SELECT value FROM parley.meta WHERE key = 'version'`)).toEqual([
    { value: String(PREVIOUS) },
  ]);
  expect(await jobs(database)).toHaveLength(3);
  await database.query('UPDATE parley.hosts SET lease_until = clock_timestamp()');
  expect(await parley(site, ['migrate'], { env })).toMatchObject({ code: 0 });
  // The previous version compares this with its own version and refuses.
  const [row] = await database.query<{ value: string }>(`SELECT value FROM parley.meta WHERE key = 'version'`);
  expect(Number(row?.value)).toBeGreaterThan(PREVIOUS);
});
