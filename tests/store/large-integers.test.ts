// An integer that JavaScript cannot represent is damage of its own row: no statement of SQLite fails because of it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { SessionRecord } from '../../src/store/access-store.js';
import { openDataDir, type DataDir } from '../../src/store/sqlite/data-dir.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import type { RunRecord } from '../../src/store/store.js';
import { ask, change, newRun, T0 } from './conformance.js';

const HUGE = ['4611686018427387904', '9000000000000000001', '-9223372036854775808'];
let dir: string;
let data: DataDir;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'parley-integers-'));
  data = await openDataDir(dir, { pid: process.pid });
});

afterEach(async () => {
  await data.close();
  rmSync(dir, { recursive: true });
});

async function execute(sql: string): Promise<void> {
  const db = await openDatabase(join(dir, 'parley.db'));
  db.exec(sql);
  db.close();
}

async function createWaiting(number: number): Promise<void> {
  const created = await data.store.createRun(newRun(number));
  const { run } = created as { run: RunRecord };
  const question = ask(`int_${number}`, { asked_at: T0 + number, due_at: T0 + number, decides: true });
  await data.store.append(change(run, { set: { status: 'waiting_user' }, ask: question }));
}

test.each(HUGE.flatMap((value) => ['attempt_number', 'due_at', 'asked_at'].map((column) => [column, value])))(
  '%s = %s in one question hides no other',
  async (column, value) => {
    for (const number of [1, 2, 3]) await createWaiting(number);
    await execute(`UPDATE interactions SET ${column} = ${value} WHERE interaction_id = 'int_1'`);
    const { store } = data;
    for (const limit of [1, 2, 9]) {
      const expected = ['int_2', 'int_3'].slice(0, limit);
      expect((await store.listPending({ limit })).map(({ interaction_id: id }) => id)).toEqual(expected);
      expect((await store.summaries.listPending({ limit })).map(({ interaction_id: id }) => id)).toEqual(expected);
    }
    expect((await store.nextDecision())?.interaction_id).toBe('int_2');
    expect((await store.salvageRun('run_0001'))?.damage.map(({ text }) => text)).toEqual([
      expect.stringContaining(`${column} of question int_1`),
    ]);
    expect(await store.countPending(T0)).toMatchObject({ pending: 3 });
    expect(await store.deleteRun('run_0001', { damaged: true })).toBe('deleted');
  },
);

test.each(HUGE)('%s in the counts of turns and in a total is ignored', async (value) => {
  for (const number of [1, 2, 3, 4]) await createWaiting(number);
  await execute(`INSERT INTO turns VALUES
    ('run_0001', 1, 'codex', 'p', ${value}, ${value}, 0, '{"W":${value}}', 'completed', 'x'),
    ('run_0002', 1, 'codex', 'p', ${value}, 2, 0, '{"W":${value}}', 'completed', 'x'),
    ('run_0003', 1, 'codex', 'p', 5, 4, 0, '{"W":1}', 'completed', 'x')`);
  const expected = [{ engine: 'codex', turns: 3, units: 5, parsed: 6, warnings: { W: 1 } }];
  expect(await data.store.sumTurns()).toMatchObject(expected);
  await execute(`INSERT INTO totals VALUES ('turns', 'codex', 'p', 'fallbacks', ${value})`);
  expect(await data.store.sumTurns()).toMatchObject(expected);
  expect(await data.store.deleteRun('run_0001', { damaged: true })).toBe('deleted');
  expect(await data.store.sumTurns()).toMatchObject(expected);
});

function session(name: string): SessionRecord {
  const [sha256 = ''] = [Buffer.from(name.padEnd(32, '.')).toString('hex')];
  return {
    sha256,
    session_id: `ses_${name}`,
    token_sha256: sha256,
    token: null,
    person: 'anna',
    created_at: T0,
    last_used_at: T0,
    expires_at: T0 + 1000,
    ends_at: T0 + 500,
    address: null,
    user_agent: null,
  };
}

test.each(
  HUGE.flatMap((value) => ['created_at', 'last_used_at', 'expires_at', 'ends_at'].map((column) => [column, value])),
)('a session with %s = %s is refused and hides no other', async (column, value) => {
  const [odd, sound] = [session('odd'), session('sound')];
  for (const each of [odd, sound])
    await data.access.createSession(each, { at: T0, actor: null, address: null, type: 'sign_in', body: {} });
  await execute(`UPDATE sessions SET ${column} = ${value} WHERE session_id = 'ses_odd'`);
  expect(await data.access.listSessions({ limit: 9 })).toEqual([sound]);
  expect(await data.access.listSessions({ person: 'anna', limit: 1 })).toEqual([sound]);
  expect([await data.access.findSession(odd.sha256), data.access.hasSession(odd.sha256)]).toEqual([null, false]);
  expect(await data.access.findSession(sound.sha256)).toEqual(sound);
  expect(
    await data.access.endSession('ses_odd', { at: T0, actor: null, address: null, type: 'session.ended', body: {} }),
  ).toBe(true);
});

test.each(HUGE)('a last use and a sign-in code with %s are left out', async (value) => {
  await execute(
    `INSERT INTO token_uses VALUES ('a', ${value}, NULL), ('b', 5, NULL);
     INSERT INTO sign_in_codes VALUES ('c', 'a', ${value})`,
  );
  expect(await data.access.listTokenUses()).toEqual([{ token_sha256: 'b', used_at: 5, address: null }]);
  expect(await data.access.redeemCode('c', T0)).toBeNull();
});
