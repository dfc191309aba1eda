// Migrates a database to the current version, each step in its own transaction. Repeating it changes nothing, and
// concurrent migrations see each other's steps.
import { phrase } from '../../../messages/phrase.js';
import type { Client } from 'pg';
import { refusal } from '../../../run/request-error.js';
import type { Database } from './database.js';
import { fromText } from './text.js';
import { MIGRATIONS, type Migration } from './migrations.js';

// "parley" in ASCII, as far as it fits; no other program uses this number.
export const LOCK_SPACE = 0x7061726c;
const MIGRATING = 1;
// The maximum number of hosts in a message.
const NAMED = 5;

const VERSION = `SELECT to_regclass('parley.meta') IS NOT NULL AS known`;

export async function migrate(db: Database, migrations: readonly Migration[] = MIGRATIONS): Promise<void> {
  const client = await db.connect();
  try {
    while (await takeStep(client, migrations));
  } finally {
    await client.end().catch(() => {});
  }
}

async function takeStep(client: Client, migrations: readonly Migration[]): Promise<boolean> {
  await client.query('BEGIN');
  try {
    await client.query('SELECT pg_advisory_xact_lock($1, $2)', [LOCK_SPACE, MIGRATING]);
    const version = checkVersion(await readVersion(client), migrations);
    const step = migrations.find((each) => each.version > version);
    if (step) {
      if (version > 0) await refuseBesideHosts(client);
      await client.query(
        'CREATE SCHEMA IF NOT EXISTS parley; CREATE TABLE IF NOT EXISTS parley.meta (key text PRIMARY KEY, value ' +
          'text NOT NULL)',
      );
      await client.query(step.sql);
      await client.query(
        `INSERT INTO parley.meta (key, value) VALUES ('version', $1) ON CONFLICT (key) DO UPDATE SET value = $1`,
        [String(step.version)],
      );
    }
    await client.query('COMMIT');
    return step !== undefined;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

// Hosts of two versions must not work at the same time. The lock prevents lease renewals and new hosts until the step
// is committed; whether a stopped host may return afterwards is decided by its generation (host-lease.ts).
async function refuseBesideHosts(client: Client): Promise<void> {
  await client.query('LOCK TABLE parley.hosts IN SHARE ROW EXCLUSIVE MODE');
  const { rows } = await client.query<{ name: string }>(
    'SELECT name FROM parley.hosts WHERE lease_until > clock_timestamp() ORDER BY name',
  );
  if (rows.length === 0) return;
  const names = rows
    .slice(0, NAMED)
    .map(({ name }) => fromText(name))
    .join(', ');
  const more = rows.length - NAMED;
  throw refusal('HOSTS_DIFFER.in_use', { hosts: more > 0 ? phrase('and_more', { names, count: more }) : names });
}

async function readVersion(client: Client): Promise<number> {
  const {
    rows: [meta],
  } = await client.query<{ known: boolean }>(VERSION);
  if (!meta?.known) return 0;
  const {
    rows: [row],
  } = await client.query<{ value: string }>(`SELECT value FROM parley.meta WHERE key = 'version'`);
  return Number(row?.value ?? 0);
}

// Refuses a newer database, and one that must be migrated first.
export async function checkMigrated(db: Database): Promise<void> {
  const client = await db.connect();
  try {
    const version = checkVersion(await readVersion(client));
    if (version === newest(MIGRATIONS)) return;
    const database = db.place.label;
    throw version === 0
      ? refusal('DATABASE_NOT_MIGRATED.empty', { database })
      : refusal('DATABASE_NOT_MIGRATED.old', { database, version, needed: newest(MIGRATIONS) });
  } finally {
    await client.end().catch(() => {});
  }
}

function checkVersion(version: number, migrations: readonly Migration[] = MIGRATIONS): number {
  if (version > newest(migrations)) throw refusal('DATABASE_TOO_NEW.postgres', { version, known: newest(migrations) });
  return version;
}

function newest(migrations: readonly Migration[]): number {
  return migrations.at(-1)?.version ?? 0;
}
