// The database becomes smaller: by itself when runs are deleted, and as small as possible with parley compact, which
// loses nothing whatever interrupts it.
import { execFileSync } from 'node:child_process';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../../src/store/sqlite/open-database.js';
import {
  createSite,
  expectLines,
  listRuns,
  parley,
  start,
  startDetached,
  untilEngine,
  untilFree,
  type Site,
} from '../../support/command.js';
import { startServer } from '../../support/served-process.js';
import { putOldData, UPGRADE_FIXTURES } from '../../support/upgrade-fixture.js';

const MIB = 1024 * 1024;

const databaseOf = ({ data }: Site): string => join(data, 'parley.db');
const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

async function expectIntact(site: Site): Promise<void> {
  expect(await parley(site, ['verify', '--all'])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('all intact') as string,
  });
}

async function createRuns(site: Site): Promise<void> {
  const prompts = ['[[events 3000 100]][[done 1]]', '[[answer Hello.]][[done 1]]', '[[fail]]'];
  for (const prompt of prompts) await parley(site, ['run', 'rehearsal', '--auto', prompt]);
  await parley(site, ['run', 'rehearsal', '--interactive', '--detach', 'Set up the storage']);
  await expect
    .poll(async () => (await listRuns(site)).map(({ status }) => status).toSorted())
    .toEqual(['failed', 'succeeded', 'succeeded', 'waiting_user']);
  await untilFree(site);
}

// Makes the database large, without runs. SQLite can move its pages, but not make them smaller.
async function addBallast(site: Site, mib: number): Promise<void> {
  const db = await openDatabase(databaseOf(site));
  db.exec(`CREATE TABLE ballast (body BLOB);
    WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ${mib})
    INSERT INTO ballast SELECT randomblob(${MIB}) FROM number`);
  db.close();
}

async function dropBallast(site: Site): Promise<void> {
  const db = await openDatabase(databaseOf(site));
  db.exec('DROP TABLE ballast');
  db.close();
}

test('a server whose runs are deleted makes its database smaller without any command', async () => {
  const site = createSite();
  const server = await startServer(site);
  const ids = await Promise.all(
    Array.from({ length: 16 }, async () => {
      const run = await server.client.create({ engine: 'rehearsal', prompt: '[[events 6000 200]][[done 1]]' });
      return run.run_id;
    }),
  );
  for (const id of ids)
    await expect.poll(async () => (await server.client.get(id)).status, { timeout: 60_000 }).toBe('succeeded');
  const before = sizeOf(databaseOf(site)) + sizeOf(`${databaseOf(site)}-wal`);
  for (const id of ids.slice(1)) await server.client.delete(id);
  // Another process writes to the same database meanwhile.
  expect(await parley(site, ['token', 'add', 'anna'])).toMatchObject({ code: 0 });
  await expect
    .poll(() => sizeOf(databaseOf(site)) + sizeOf(`${databaseOf(site)}-wal`), { timeout: 60_000 })
    .toBeLessThan(before / 2);
  server.child.kill('SIGTERM');
  expect((await server.ended).code).toBe(0);
  await expectIntact(site);
});

describe('parley compact', () => {
  test('prints both sizes; every run verifies before and after, and the waiting one is answered', async () => {
    const site = createSite();
    await createRuns(site);
    await addBallast(site, 20);
    await dropBallast(site);
    await expectIntact(site);
    const shown = await parley(site, ['show', 'last', '--json']);
    const { code, stdout, stderr } = await parley(site, ['compact']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^The database had \d\d(\.\d)? MB; now it has \d+(\.\d)? kB\.\n$/);
    expect(sizeOf(`${databaseOf(site)}-wal`)).toBe(0);
    await expectIntact(site);
    expect((await parley(site, ['show', 'last', '--json'])).stdout).toBe(shown.stdout);
    const again = await parley(site, ['compact', '--json']);
    expect(expectLines(again.stdout)).toEqual([
      {
        type: 'compact',
        data: site.data,
        before: sizeOf(databaseOf(site)),
        after: sizeOf(databaseOf(site)),
        damaged: [],
        held_up: false,
      },
    ]);
    expect(await parley(site, ['reply', 'last', 'Quickly'])).toMatchObject({ code: 0 });
    await untilFree(site);
    await expectIntact(site);
    expect((await parley(site, ['doctor', '--full'])).stdout).toContain('has no structural damage');
  });

  test('is refused while a server or a worker has the directory, and then works', async () => {
    const site = createSite();
    const server = await startServer(site);
    const refused = await parley(site, ['compact']);
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/parley compact needs the data directory .* is in use by process \d+/) as string,
    });
    expect(refused.stderr).toContain('Stop that process');
    server.child.kill('SIGTERM');
    await server.ended;
    const id = await startDetached(site, 'rehearsal', '[[answer At work.]][[hang]]');
    await untilEngine(site);
    const json = await parley(site, ['compact', '--json']);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { code: 'DATA_DIR_IN_USE' } });
    expect((await parley(site, ['ls', '--quiet'])).stdout).toContain(id);
    await parley(site, ['cancel', id]);
    await untilFree(site);
    expect((await parley(site, ['compact'])).code).toBe(0);
    await expectIntact(site);
  });

  test('two at once: one compacts, the other is refused or compacts after it', async () => {
    const site = createSite();
    await createRuns(site);
    await addBallast(site, 40);
    const [first, second] = await Promise.all([parley(site, ['compact']), parley(site, ['compact'])]);
    expect([first.code, second.code].toSorted()[0]).toBe(0);
    for (const { code, stderr } of [first, second])
      if (code !== 0) expect(stderr).toContain('parley compact needs the data directory');
    await expectIntact(site);
  });

  test('without a database, and with PostgreSQL, explains what to do', async () => {
    const site = createSite();
    mkdirSync(site.data);
    expect(await parley(site, ['compact'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('There is no database in') as string,
    });
    const env = { PARLEY_DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/none' };
    expect(await parley(site, ['compact'], { env })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('autovacuum') as string,
    });
  });

  test('killed at any moment leaves a working database, and the next one completes it', async () => {
    const site = createSite();
    await createRuns(site);
    await addBallast(site, 60);
    const log = `${databaseOf(site)}-wal`;
    let killed = 0;
    // The log grows to the size of the database while the file is rewritten.
    for (const bytes of [1, MIB, 8 * MIB, 30 * MIB, 55 * MIB]) {
      const running = start(site, ['compact']);
      while (running.child.exitCode === null && sizeOf(log) < bytes)
        await new Promise((resolve) => setImmediate(resolve));
      running.child.kill('SIGKILL');
      killed += Number((await running.ended).code === 137);
      await expectIntact(site);
      expect((await parley(site, ['ls', '--json'])).stdout.trim().split('\n')).toHaveLength(4);
    }
    expect(killed).toBeGreaterThan(2);
    await dropBallast(site);
    expect((await parley(site, ['compact'])).code).toBe(0);
    expect(sizeOf(databaseOf(site)) + sizeOf(log)).toBeLessThan(MIB);
    await expectIntact(site);
    expect(await parley(site, ['reply', 'last', 'Quickly'])).toMatchObject({ code: 0 });
  });

  test('a disk that becomes full meanwhile is reported, and nothing is lost', async () => {
    const site = createSite();
    await createRuns(site);
    await addBallast(site, 20);
    // In blocks of 512 bytes. No file may become larger: neither the temporary file nor the log.
    for (const mib of [1, 5, 10, 18]) {
      const through = ['sh', '-c', `trap '' XFSZ; ulimit -f ${mib * 2048}; exec "$0" "$@"`];
      const { code, stderr } = await parley(site, ['compact'], { through });
      expect(code).toBe(1);
      expect(stderr).toMatch(/full|disk I\/O error/);
      await expectIntact(site);
    }
    await dropBallast(site);
    expect((await parley(site, ['compact'])).code).toBe(0);
    await expectIntact(site);
  });

  test('is refused on a disk without the space for it, and names how much is needed', async ({ skip }) => {
    const site = createSite();
    mkdirSync(site.data, { mode: 0o700 });
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=40m,mode=700', 'tmpfs', site.data], { stdio: 'pipe' });
    } catch {
      return skip('no file system can be mounted here');
    }
    onTestFinished(() => void execFileSync('umount', ['-l', site.data]));
    await createRuns(site);
    await addBallast(site, 16);
    const before = sizeOf(databaseOf(site));
    const { code, stderr } = await parley(site, ['compact']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/may need 3\d(\.\d)? MB of free disk space, and \d+(\.\d)? MB is free/);
    expect(sizeOf(databaseOf(site))).toBe(before);
    await dropBallast(site);
    expect((await parley(site, ['compact'])).code).toBe(0);
    await expectIntact(site);
  });

  test('while another process reads an old state, says so; the file becomes smaller when it has ended', async () => {
    const site = createSite();
    await createRuns(site);
    await addBallast(site, 20);
    await dropBallast(site);
    const reader = await openDatabase(databaseOf(site), { readOnly: true });
    // A prepared statement would keep the connection open until it is garbage-collected.
    reader.exec('BEGIN; SELECT COUNT(*) FROM runs');
    const { code, stderr } = await parley(site, ['compact']);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining('Another process still reads the database') as string,
    });
    expect(sizeOf(databaseOf(site))).toBeGreaterThan(20 * MIB);
    reader.exec('COMMIT');
    reader.close();
    const server = await startServer(site);
    await expect
      .poll(() => sizeOf(databaseOf(site)) + sizeOf(`${databaseOf(site)}-wal`), { timeout: 60_000 })
      .toBeLessThan(MIB);
    server.child.kill('SIGTERM');
    await server.ended;
    await expectIntact(site);
  });

  test.each(UPGRADE_FIXTURES.map((fixture) => [fixture.versions.sqlite, fixture] as const))(
    'upgrades and packs a data directory of version %i, and a server continues its runs',
    async (_version, fixture) => {
      const site = createSite();
      await putOldData(fixture, site);
      writeFileSync(join(site.data, 'config.json'), '{}', { mode: 0o600 });
      expect(await parley(site, ['compact'])).toMatchObject({ code: 0, stderr: '' });
      const server = await startServer(site);
      // The server writes the files of the journals again.
      await expect.poll(async () => (await parley(site, ['verify', '--all'])).code, { timeout: 60_000 }).toBe(0);
      server.child.kill('SIGTERM');
      expect((await server.ended).code).toBe(0);
      expect((await listRuns(site)).length).toBeGreaterThan(8);
    },
  );
});
