// What earlier versions left on a disk and in a PostgreSQL database when they were killed at work: runs in each state,
// some of them waiting. scripts/make-upgrade-fixtures.mjs says how they were made. Each is a folder named after the
// version of its parley.db.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import type { Site } from './command.js';

const ALL = new URL('../old-databases/', import.meta.url).pathname;
// Where they were made.
const MADE_IN = '/tmp/parley-old';
const MADE_WITH = join(MADE_IN, 'data');
// Files whose bytes the journal protects with a hash: they keep the paths of then.
const IS_LOG = /^[^/]+\/(?:attempts\/\d+\/[^/]+\.log|agents\/[^/]+\/runtime\/.*)$/;

export interface UpgradeFixture {
  readonly folder: string;
  // The newest versions of the databases that its program knows.
  readonly versions: { readonly commit: string; readonly sqlite: number; readonly postgres: number };
}

export const UPGRADE_FIXTURES: readonly UpgradeFixture[] = readdirSync(ALL)
  .filter((name) => name.startsWith('upgrade-'))
  .map((name) => {
    const folder = join(ALL, name);
    const versions = JSON.parse(readFileSync(join(folder, 'versions.json'), 'utf8')) as UpgradeFixture['versions'];
    return { folder, versions };
  })
  .toSorted((a, b) => a.versions.sqlite - b.versions.sqlite);

function readKept({ folder }: UpgradeFixture, name: string): Buffer {
  const packed = join(folder, `${name}.gz`);
  return existsSync(packed) ? gunzipSync(readFileSync(packed)) : readFileSync(join(folder, name));
}

// The sessions and logs of the runs. The folder in which the agents work cannot be moved, because the events name it.
function putFiles(fixture: UpgradeFixture, { data }: Site, name: string): void {
  mkdirSync(join(MADE_IN, 'folder'), { recursive: true });
  const files = JSON.parse(readKept(fixture, name).toString()) as Record<string, string>;
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(data, 'runs', path)), { recursive: true, mode: 0o700 });
    writeFileSync(join(data, 'runs', path), IS_LOG.test(path) ? text : text.replaceAll(MADE_WITH, data));
  }
}

export async function putOldData(fixture: UpgradeFixture, site: Site): Promise<void> {
  mkdirSync(site.data, { recursive: true, mode: 0o700 });
  const file = join(site.data, 'parley.db');
  writeFileSync(file, readKept(fixture, 'sqlite.db'));
  const db = await openDatabase(file);
  const move = (table: string, column: string) =>
    db.prepare(`UPDATE ${table} SET ${column} = replace(${column}, ?, ?)`).run(MADE_WITH, site.data);
  move('runs', 'spec_json');
  move('request_interactive_runtime', 'session_handle_json');
  if (fixture.versions.sqlite >= HOME_COLUMN_SINCE) move('runs', 'home');
  db.close();
  putFiles(fixture, site, 'sqlite-files.json');
}

const HOME_COLUMN_SINCE = 7;

// Returns the statements that make the old database; its files are put into the site.
export function putOldDatabase(fixture: UpgradeFixture, site: Site): string {
  mkdirSync(site.data, { recursive: true, mode: 0o700 });
  putFiles(fixture, site, 'postgres-files.json');
  return readKept(fixture, 'postgres.sql').toString().replaceAll(MADE_WITH, site.data);
}
