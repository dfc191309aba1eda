// Looking a run up by the end of its id uses an index: its cost does not grow with the number of runs.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { migrate } from '../../src/store/sqlite/migrate.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';

test('SQLite answers by the index of tails, and prefixes by the key', async () => {
  const root = mkdtempSync(join(tmpdir(), 'parley-tails-'));
  const db = await openDatabase(join(root, 'parley.db'));
  try {
    migrate(db);
    const plan = (sql: string): string => JSON.stringify(db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all());
    expect(plan("SELECT run_id FROM runs WHERE substr(run_id, -6) = 'ABCDEF' ORDER BY run_id DESC")).toContain(
      'runs_by_tail',
    );
    expect(
      plan("SELECT run_id FROM runs WHERE run_id >= 'run_01' AND run_id < 'run_02' ORDER BY run_id DESC LIMIT 6"),
    ).toMatch(/SEARCH runs USING .*INDEX/);
  } finally {
    db.close();
    rmSync(root, { recursive: true, force: true });
  }
});
