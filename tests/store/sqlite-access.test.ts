// Sessions, codes and the administrative journal in SQLite.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openAccess, openDataDir } from '../../src/store/sqlite/data-dir.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import { describeAccess, type OpenAccess } from './access-conformance.js';

const WRITER = { pid: process.pid };

async function withRaw(file: string, work: (exec: (sql: string) => void) => void): Promise<void> {
  const db = await openDatabase(file);
  try {
    work((sql) => db.exec(sql));
  } finally {
    db.close();
  }
}

async function open(): Promise<OpenAccess> {
  const dir = mkdtempSync(join(tmpdir(), 'parley-access-'));
  const data = await openDataDir(dir, WRITER);
  const beside = await openAccess(dir, WRITER);
  return {
    store: data.store,
    access: data.access,
    beside: beside.access,
    audit: 'audit',
    tamper: (sql) =>
      withRaw(join(dir, 'parley.db'), (exec) =>
        exec(`DROP TRIGGER IF EXISTS audit_keeps_rows; DROP TRIGGER IF EXISTS audit_keeps_values; ${sql}`),
      ),
    close: async () => {
      await beside.close();
      await data.close();
      rmSync(dir, { recursive: true });
    },
  };
}

describeAccess('access in SQLite', open);

test('rows of the journal can be neither changed nor deleted by a statement', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'parley-access-'));
  const data = await openDataDir(dir, WRITER);
  await data.access.appendAudit({ at: 1, actor: null, address: null, type: 'sign_out', body: {} });
  await data.close();
  for (const sql of ['DELETE FROM audit', `UPDATE audit SET type = 'x'`])
    await expect(withRaw(join(dir, 'parley.db'), (exec) => exec(sql))).rejects.toThrow(
      /administrative journal are never/,
    );
  rmSync(dir, { recursive: true });
});

test('a command creates a missing database, and writes beside the process that holds the directory', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'parley-access-'));
  const first = await openAccess(dir, WRITER);
  await first.access.appendAudit({ at: 1, actor: null, address: null, type: 'token.added', body: {} });
  await first.close();
  const server = await openDataDir(dir, WRITER);
  const beside = await openAccess(dir, WRITER);
  await beside.access.appendAudit({ at: 2, actor: null, address: null, type: 'token.removed', body: {} });
  await beside.close();
  expect((await server.access.listAudit(0, 9)).map(({ type }) => type)).toEqual(['token.added', 'token.removed']);
  await server.close();
  expect(readFileSync(join(dir, 'parley.db')).length).toBeGreaterThan(0);
  rmSync(dir, { recursive: true });
});
