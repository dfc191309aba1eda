// The same on PostgreSQL: commands in a folder full of planted files neither run them nor put anything from them into
// the database.
import { expect, onTestFinished, test } from 'vitest';
import { createSite } from '../support/command.js';
import { callEverything, canPlant, KINDS, plant } from '../support/planted-repository.js';
import { withDatabase } from '../support/postgres.js';

test.each(KINDS.filter(canPlant))(
  'on PostgreSQL every command works beside planted %s, and runs none of them',
  async (kind) => {
    const database = await withDatabase({ empty: true });
    onTestFinished(() => database.drop());
    const site = createSite();
    const planted = plant(site, kind);
    const calls = await callEverything(site, planted, { PARLEY_DATABASE_URL: database.url });
    expect(planted.executed()).toEqual([]);
    for (const { stdout, stderr } of calls)
      expect(`${stdout}${stderr}`).not.toMatch(/internal error|planted|203\.0\.113/);
    // A planted crontab would be scheduled in its own schema.
    const schemas = await database.query<{ nspname: string }>(
      `SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_|^information_schema$'`,
    );
    expect(schemas.map(({ nspname }) => nspname).toSorted()).toEqual(['parley', 'public']);
  },
  600_000,
);
