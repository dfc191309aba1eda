// A data directory of the previous version is migrated by starting a server on it, and nothing in it is lost.
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkVersion } from '../../src/store/sqlite/migrate.js';
import { MIGRATIONS } from '../../src/store/sqlite/migrations.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import { createSite, parley } from '../support/command.js';
import { startServer } from '../support/served-process.js';
import { expectUpgraded, putOldData } from '../support/upgrade-fixture.js';

const PREVIOUS = 5;

test('a data directory of the previous version is upgraded: waiting runs are answered to the end', async () => {
  const site = createSite();
  await putOldData(site);
  const server = await startServer(site);
  await expectUpgraded(server, { isShared: false });
  server.child.kill('SIGTERM');
  expect(await server.ended).toMatchObject({ code: 0 });
  expect(await parley(site, ['doctor'])).toMatchObject({
    stdout: expect.stringContaining('none found: checked all 9 runs') as string,
  });
});

test('the previous version refuses an upgraded data directory, and a copy made before serves it again', async () => {
  const site = createSite();
  await putOldData(site);
  const file = join(site.data, 'parley.db');
  copyFileSync(file, `${file}.before`);
  // A command that only reads does not upgrade.
  expect(await parley(site, ['ls'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('older version (5)') as string,
  });
  const server = await startServer(site);
  server.child.kill('SIGTERM');
  await server.ended;
  const previous = MIGRATIONS.filter(({ version }) => version <= PREVIOUS);
  const db = await openDatabase(file, { readOnly: true });
  expect(() => checkVersion(db, previous)).toThrow(expect.objectContaining({ code: 'DATABASE_TOO_NEW' }) as Error);
  db.close();
  const copy = await openDatabase(`${file}.before`, { readOnly: true });
  expect(checkVersion(copy, previous)).toBe(PREVIOUS);
  copy.close();
});
