// A data directory of an earlier version is brought up to date by starting a server on it, and nothing in it is lost.
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkVersion, NEWEST_VERSION } from '../../src/store/sqlite/migrate.js';
import { MIGRATIONS } from '../../src/store/sqlite/migrations.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import { createSite, parley, type Site } from '../support/command.js';
import { expectUpgradedFrom5, expectUpgradedFrom9 } from '../support/expect-upgraded.js';
import { startServer, type ServerProcess } from '../support/served-process.js';
import { putOldData, UPGRADE_FIXTURES, type UpgradeFixture } from '../support/upgrade-fixture.js';

const OF: Readonly<Record<number, typeof expectUpgradedFrom9>> = { 5: expectUpgradedFrom5, 9: expectUpgradedFrom9 };

async function upgrade(fixture: UpgradeFixture, settings: object): Promise<{ site: Site; server: ServerProcess }> {
  const site = createSite();
  await putOldData(fixture, site);
  writeFileSync(join(site.data, 'config.json'), JSON.stringify(settings), { mode: 0o600 });
  return { site, server: await startServer(site) };
}

test.each(UPGRADE_FIXTURES.map((fixture) => [fixture.versions.sqlite, fixture] as const))(
  'a data directory of version %i is upgraded: waiting runs are answered to the end, and all runs verify',
  async (version, fixture) => {
    const { site, server } = await upgrade(fixture, version > 5 ? { recovery: { queued: 'requeue' } } : {});
    const { runs } = await server.client.list({ limit: 100 });
    await OF[version]?.(server, { isShared: false });
    expect.hasAssertions();
    server.child.kill('SIGTERM');
    expect(await server.ended).toMatchObject({ code: 0 });
    const verified = await parley(site, ['verify', '--all']);
    expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining('all intact') as string });
    expect(await parley(site, ['doctor'])).toMatchObject({
      stdout: expect.stringMatching(/none found: checked all \d+ runs/) as string,
    });
    expect(runs.length).toBeGreaterThan(8);
    expect(await parley(site, ['audit', '--verify'])).toMatchObject({ code: 0 });
  },
);

test.each(UPGRADE_FIXTURES.map((fixture) => [fixture.versions.sqlite, fixture] as const))(
  'version %i refuses an upgraded data directory, and a copy made before serves it again',
  async (version, fixture) => {
    const site = createSite();
    await putOldData(fixture, site);
    const file = join(site.data, 'parley.db');
    copyFileSync(file, `${file}.before`);
    // A command that only reads does not upgrade.
    expect(await parley(site, ['ls'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`older version (${version})`) as string,
    });
    const server = await startServer(site);
    server.child.kill('SIGTERM');
    await server.ended;
    // What that program knows; it compares the same two numbers.
    const previous = MIGRATIONS.filter((step) => step.version <= version);
    const db = await openDatabase(file, { readOnly: true });
    expect(() => checkVersion(db, previous)).toThrow(expect.objectContaining({ code: 'DATABASE_TOO_NEW' }) as Error);
    expect(checkVersion(db)).toBe(NEWEST_VERSION);
    db.close();
    const copy = await openDatabase(`${file}.before`, { readOnly: true });
    expect(checkVersion(copy, previous)).toBe(version);
    copy.close();
  },
);
