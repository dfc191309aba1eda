// The contract of every store of access data, independent of its database.
import { describe, expect, test } from 'vitest';
import type { AccessStore, SessionRecord } from '../../src/store/access-store.js';
import { auditDigest, verifyAudit, type AuditEntry } from '../../src/store/audit.js';
import { FIRST_DIGEST } from '../../src/store/digest.js';
import type { Store } from '../../src/store/store.js';
import { change, flush, newRun, T0 } from './conformance.js';

export interface OpenAccess {
  readonly store: Store;
  readonly access: AccessStore;
  // A second connection to the same data, like that of a command next to a server.
  readonly beside: AccessStore;
  // Runs a statement, bypassing all rules of the store.
  tamper(sql: string): Promise<void>;
  // Names of the table and its triggers.
  readonly audit: string;
  close(): Promise<void>;
}

const hash = (name: string): string => Buffer.from(name.padEnd(32, '.')).toString('hex').slice(0, 64);
const entry = (type: AuditEntry['type'], body: AuditEntry['body'] = {}): AuditEntry => ({
  at: T0,
  actor: { kind: 'token', name: 'anna', token: 'phone' },
  address: '192.0.2.7',
  type,
  body,
});

function session(name: string, changes: Partial<SessionRecord> = {}): SessionRecord {
  return {
    sha256: hash(name),
    session_id: `ses_${name}`,
    token_sha256: hash('token'),
    token: 'phone',
    person: 'anna',
    created_at: T0,
    last_used_at: T0,
    expires_at: T0 + 1000,
    ends_at: T0 + 500,
    address: '192.0.2.7',
    user_agent: 'Browser/1.0 "quoted" \u2028',
    ...changes,
  };
}

const forge = (table: string, seq: string, digest = "'x'"): string =>
  `INSERT INTO ${table} (seq, ts, type, body_json, digest) VALUES (${seq}, 1, 'token.added', '{}', ${digest})`;

export function describeAccess(name: string, open: () => Promise<OpenAccess>): void {
  const with_ = async (work: (opened: OpenAccess) => Promise<void>): Promise<void> => {
    const opened = await open();
    try {
      await work(opened);
    } finally {
      await opened.close();
    }
  };

  describe(name, () => {
    test('a session is found by its hash until it is ended, also by another process', () =>
      with_(async ({ access, beside }) => {
        const made = session('one');
        await access.createSession(made, entry('sign_in'));
        expect([
          await access.findSession(made.sha256),
          await access.findSessionById('ses_one'),
          access.hasSession(made.sha256),
          await access.findSession(hash('other')),
        ]).toEqual([made, made, true, null]);
        expect(await beside.endSession('ses_one', entry('session.ended'))).toBe(true);
        expect(await beside.endSession('ses_one', entry('session.ended'))).toBe(false);
        await expect.poll(() => access.findSession(made.sha256)).toBeNull();
        await expect.poll(() => access.hasSession(made.sha256)).toBe(false);
        expect((await access.listAudit(0, 10)).map(({ type }) => type)).toEqual(['sign_in', 'session.ended']);
      }));

    test('sessions are listed by person and page by page, and ended ones are dropped', () =>
      with_(async ({ access }) => {
        for (const [index, person] of ['anna', 'bob', 'anna'].entries())
          await access.createSession(session(`s${index}`, { person }), entry('sign_in'));
        const ids = async (filter: Parameters<AccessStore['listSessions']>[0]) =>
          (await access.listSessions(filter)).map(({ session_id: id }) => id);
        expect([
          await ids({ limit: 2 }),
          await ids({ limit: 2, after: 'ses_s1' }),
          await ids({ person: 'anna', limit: 9 }),
        ]).toEqual([['ses_s0', 'ses_s1'], ['ses_s2'], ['ses_s0', 'ses_s2']]);
        await access.touchSession(hash('s1'), { last_used_at: T0 + 100, ends_at: T0 + 900 });
        await access.createSession(session('late', { created_at: T0 + 600, ends_at: T0 + 2000 }), entry('sign_in'));
        expect(await ids({ limit: 9 })).toEqual(['ses_late', 'ses_s1']);
      }));

    test('one token has a bounded number of sessions: the oldest end first', () =>
      with_(async ({ access }) => {
        for (let index = 0; index < 203; index += 1)
          await access.createSession(
            session(`n${String(index).padStart(3, '0')}`, { created_at: T0 + index, ends_at: T0 + 9999 }),
            entry('sign_in'),
          );
        const left = await access.listSessions({ limit: 500 });
        expect([left.length, left[0]?.session_id]).toEqual([200, 'ses_n003']);
      }));

    test('a code is redeemed once, however many try at the same moment, and not after it expired', () =>
      with_(async ({ access, beside }) => {
        const code = { sha256: hash('code'), token_sha256: hash('token'), expires_at: T0 + 1000 };
        await access.createCode(code, entry('code.created'));
        const won = await Promise.all(
          [access, beside, access, beside].map((each) => each.redeemCode(code.sha256, T0 + 999)),
        );
        expect(won.filter((each) => each !== null)).toEqual([code]);
        await access.createCode({ ...code, sha256: hash('late') }, entry('code.created'));
        expect(await access.redeemCode(hash('late'), T0 + 1000)).toBeNull();
      }));

    test('data bound to a token is deleted with it', () =>
      with_(async ({ access }) => {
        await access.createSession(session('one'), entry('sign_in'));
        await access.createSession(session('other', { token_sha256: hash('kept') }), entry('sign_in'));
        await access.createCode(
          { sha256: hash('code'), token_sha256: hash('token'), expires_at: T0 + 1000 },
          entry('code.created'),
        );
        await access.noteTokenUse({ token_sha256: hash('token'), used_at: T0, address: null });
        await access.noteTokenUse({ token_sha256: hash('kept'), used_at: T0, address: '::1' });
        await access.noteTokenUse({ token_sha256: hash('kept'), used_at: T0 + 5, address: '::1' });
        await access.forgetToken(hash('token'));
        expect(await access.findSession(hash('one'))).toBeNull();
        expect(await access.redeemCode(hash('code'), T0)).toBeNull();
        expect(await access.listTokenUses()).toEqual([{ token_sha256: hash('kept'), used_at: T0 + 5, address: '::1' }]);
        expect((await access.listSessions({ limit: 9 })).map(({ session_id: id }) => id)).toEqual(['ses_other']);
      }));

    test('processes that append to the journal at once make one chain without a gap', () =>
      with_(async ({ access, beside }) => {
        await Promise.all(
          Array.from({ length: 40 }, (_, index) =>
            (index % 2 === 0 ? access : beside).appendAudit(
              entry('token.added', { name: `t${index}`, odd: '\u0000\ud800' }),
            ),
          ),
        );
        const rows = await access.listAudit(0, 100);
        expect(rows.map(({ seq }) => seq)).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
        expect(await verifyAudit(access)).toEqual({ ok: true, rows: 40, problem: null });
        expect(await verifyAudit(access, 7)).toEqual({ ok: true, rows: 7, problem: null });
        expect((await access.listAuditOfType('token.added', 2)).map(({ seq }) => seq)).toEqual([40, 39]);
      }));

    test('a deleted run leaves a tombstone with the end of its journal; a refused deletion leaves none', () =>
      with_(async ({ store, access }) => {
        const made = await store.createRun(newRun(1));
        if (!made.created) throw new Error(made.reason);
        const trace = { at: T0 + 7, actor: { kind: 'user', name: 'ann' } as const, address: '192.0.2.9' };
        expect(await store.deleteRun(made.run.run_id, { trace })).toBe('not_ended');
        await store.append(change(made.run, { set: { status: 'failed' }, journal: flush(3, 1, null, T0 + 10) }));
        const run = await store.loadRun(made.run.run_id);
        expect(await store.deleteRun(made.run.run_id, { trace })).toBe('deleted');
        expect(await store.deleteRun(made.run.run_id, { trace })).toBe('unknown_run');
        const rows = await access.listAudit(0, 10);
        expect(
          rows.map(({ ts, type, actor_json: actor, address, body_json: body }) => [
            ts,
            type,
            JSON.parse(actor ?? ''),
            address,
            JSON.parse(body),
          ]),
        ).toEqual([
          [
            T0 + 7,
            'run.deleted',
            trace.actor,
            '192.0.2.9',
            { run_id: made.run.run_id, rasp_seq: run?.heads.rasp_seq, digest: run?.heads.digest },
          ],
        ]);
      }));

    test.each([
      ['a changed row', (table: string) => `UPDATE ${table} SET body_json = '{}' WHERE seq = 2`, /row 2 was changed/],
      ['a changed address', (table: string) => `UPDATE ${table} SET address = NULL WHERE seq = 3`, /row 3 was changed/],
      ['a removed row', (table: string) => `DELETE FROM ${table} WHERE seq = 2`, /row 2 is missing/],
      ['a removed last row', (table: string) => `DELETE FROM ${table} WHERE seq = 4`, /row 4 is missing/],
      ['all rows removed', (table: string) => `DELETE FROM ${table}`, /row 1 is missing/],
      [
        'rows that changed places',
        (table: string) => `UPDATE ${table} SET seq = CASE seq WHEN 2 THEN -3 WHEN 3 THEN -2 END WHERE seq IN (2, 3)`,
        /row 2 is missing/,
      ],
    ])('%s of the journal is detected', (_what, sql, problem) =>
      with_(async ({ access, audit, tamper }) => {
        for (let index = 0; index < 4; index += 1)
          await access.appendAudit(entry('token.added', { name: `t${index}` }));
        await tamper(sql(audit));
        if (sql(audit).includes('CASE')) await tamper(`UPDATE ${audit} SET seq = -seq WHERE seq < 0`);
        const verdict = await verifyAudit(access);
        expect(verdict.ok).toBe(false);
        expect(verdict.problem).toMatch(sql(audit).includes('CASE') ? /row 2 was changed/ : problem);
      }),
    );

    // Changes to the journal by a user with write access to the database, besides changing its rows.
    const chained = auditDigest(FIRST_DIGEST, {
      seq: 1,
      ts: 1,
      type: 'token.added',
      actor_json: null,
      address: null,
      body_json: '{}',
    });
    test.each([
      ['a row after the head', 4, (table: string) => forge(table, '5'), /row 5 is not covered by the head/],
      ['a row far after the head', 4, (table: string) => forge(table, '1000'), /row 1000 is not covered by the head/],
      [
        'a row with the largest number',
        4,
        (table: string) => forge(table, '9223372036854775807'),
        /row \d+ is not covered by the head/,
      ],
      [
        'a first row that fits the chain',
        0,
        (table: string) => forge(table, '1', `'${chained}'`),
        /row 1 is not covered by the head/,
      ],
      ['a row before the first', 4, (table: string) => forge(table, '-5'), /row -5 is before the first/],
      ['a missing head', 4, (table: string) => `DELETE FROM ${table}_head`, /the head is missing/],
      [
        'a head that was moved back',
        4,
        (table: string) => `UPDATE ${table}_head SET seq = 2, digest = (SELECT digest FROM ${table} WHERE seq = 2)`,
        /row 3 is not covered/,
      ],
      [
        'a head with another number',
        4,
        (table: string) => `UPDATE ${table}_head SET seq = 9223372036854775807`,
        /the head is missing/,
      ],
    ])('%s is reported, from then on too, and rows are still appended', (_what, count, sql, problem) =>
      with_(async ({ access, beside, audit, tamper }) => {
        for (let index = 0; index < count; index += 1)
          await access.appendAudit(entry('token.added', { name: `t${index}` }));
        await tamper(sql(audit));
        expect(await verifyAudit(access)).toMatchObject({
          ok: false,
          problem: expect.stringMatching(problem) as string,
        });
        expect(await verifyAudit(access, 2)).toMatchObject({ ok: /before the first/.test(problem.source) });
        await access.createSession(session('one'), entry('sign_in'));
        await beside.appendAudit(entry('token.removed', { name: 't0' }));
        expect(await access.endSession('ses_one', entry('session.ended'))).toBe(true);
        const verdict = await verifyAudit(access);
        expect(verdict).toMatchObject({ ok: false, problem: expect.any(String) as string });
        expect((await access.listAuditOfType('token.removed', 9)).length).toBe(1);
        const broken = await access.listAuditOfType('journal.broken', 9);
        expect(broken.length).toBe(/before the first/.test(problem.source) || sql(audit).includes('(922') ? 0 : 1);
      }),
    );

    test('rows that are appended while the journal is checked are no break', () =>
      with_(async ({ access, beside }) => {
        await access.appendAudit(entry('sign_in'));
        const slow = {
          listAudit: async (after: number, limit: number) => {
            await beside.appendAudit(entry('sign_out'));
            return access.listAudit(after, limit);
          },
          auditHead: () => access.auditHead(),
        };
        expect(await verifyAudit(slow)).toMatchObject({ ok: true });
      }));

    test('a session is ended even if that cannot be recorded', () =>
      with_(async ({ access, audit, tamper }) => {
        const made = session('one');
        await access.createSession(made, entry('sign_in'));
        await tamper(`ALTER TABLE ${audit} RENAME TO other`);
        await expect(access.endSession('ses_one', entry('session.ended'))).rejects.toThrow(/could not be recorded/);
        expect(await access.findSession(made.sha256)).toBeNull();
      }));
  });
}
