// The contract of every store: the same suite runs against each of them.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { stateOf } from '../../src/journal/run-state.js';
import { DamagedDataError } from '../../src/kernel/stored-json.js';
import type { FoldedQuestion } from '../../src/run/run-fold.js';
import type { EngineSessionHandle } from '../../src/run/session-handle.js';
import { countTicks } from '../support/count-ticks.js';
import { FIRST_DIGEST, nextDigest } from '../../src/store/digest.js';
import type { ResolvedQuestion } from '../../src/store/row-changes.js';
import {
  FIRST_SEGMENT,
  GIVEN_UP_KEPT_MS,
  type Delivery,
  type JournalFlush,
  type Lines,
  type NewDelivery,
  type NewRun,
  type RunAppend,
  type RunRecord,
  type Store,
  type TurnCounts,
} from '../../src/store/store.js';

export const T0 = Date.parse('2026-11-15T12:00:00.000Z');

export function lines(firstSeq: number, count: number, ts = T0): Lines {
  const texts = Array.from({ length: count }, (_, index) =>
    JSON.stringify({
      seq: firstSeq + index,
      ts: new Date(ts + index).toISOString(),
      text: `é 漢字 \u2028 ${firstSeq + index}`,
    }),
  );
  return { firstSeq, lastSeq: firstSeq + count - 1, bytes: Buffer.from(`${texts.join('\n')}\n`) };
}

// As long as the others, but different.
const converse = (bytes: Buffer): Buffer => Buffer.from(bytes.toString().replaceAll('text', 'said'));

export function flush(raspSeq: number, count: number, fcmpSeq: number | null, ts = T0): JournalFlush {
  return {
    rasp: lines(raspSeq, count, ts),
    fcmp: fcmpSeq === null ? null : { ...lines(fcmpSeq, count, ts), firstTs: ts },
    firstTs: ts,
    lastTs: ts + count - 1,
  };
}

export function newRun(number: number, changes: Partial<NewRun> = {}): NewRun {
  const id = String(number).padStart(4, '0');
  return {
    run_id: `run_${id}`,
    request_id: `req_${id}`,
    request_digest: 'digest-1',
    spec: {
      engine: 'codex',
      execution_mode: 'interactive',
      prompt: 'Hi "there"\n漢字',
      cwd: '/work',
      home: null,
      permission: 'workspace-write',
      runtime_options: { max_attempt: 3 },
      labels: { team: 'a', n: id },
    },
    session_timeout_sec: 1200,
    handle: null,
    created_at: T0 + number,
    journal: flush(1, 2, 1, T0 + number),
    queue_limit: 1000,
    ...changes,
  };
}

const HANDLE = {
  engine: 'codex',
  handle_type: 'session_id',
  handle_value: '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c',
  cwd: '/work',
  home: '/home/x',
  created_at_attempt: 1,
} as const;

export type Ask = Omit<FoldedQuestion, 'state' | 'resolution'>;

// Row changes as a test names them, without the events that would cause them.
export interface RowEdit extends Partial<Pick<RunAppend, 'now' | 'create' | 'deliveries'>> {
  readonly expect?: { readonly status: RunRecord['status']; readonly epoch: number; readonly rasp_seq: number };
  readonly set?: Partial<
    Pick<RunRecord, 'status' | 'attempt_number' | 'epoch' | 'error' | 'result' | 'cancel_requested'>
  >;
  readonly journal?: JournalFlush;
  readonly turn?: TurnCounts;
  readonly handle?: EngineSessionHandle;
  readonly ask?: Ask;
  // `asked_at`: of the question, if it is not T0.
  readonly resolve?: ResolvedQuestion & { readonly asked_at?: number };
}

const PENDING = { state: 'pending', resolution: null } as const;

// An append that fits the current run.
export function change(run: RunRecord, edit: RowEdit = {}): RunAppend {
  const { expect: expected, set = {}, journal, turn, handle, ask: asked, resolve, ...rest } = edit;
  const { epoch, ...columns } = set;
  const open = resolve ? { ...ask(resolve.interaction_id), ...resolve, ...PENDING } : null;
  const state = stateOf(run, open);
  const before = expected ? { ...state, status: expected.status } : state;
  const waited = open && resolve ? Math.max(0, resolve.resolution.at - open.asked_at) : 0;
  const isChanged = [turn, handle, asked, resolve].some(Boolean) || Object.keys(columns).length > 0;
  return {
    run_id: run.run_id,
    expect: {
      epoch: expected?.epoch ?? run.epoch,
      rasp_seq: expected?.rasp_seq ?? run.heads.rasp_seq,
    },
    now: T0 + 5000,
    epoch,
    lines: journal,
    before,
    after: isChanged
      ? {
          ...before,
          ...columns,
          transitions: set.status === undefined ? 0 : 1,
          waited_ms: before.waited_ms + waited,
          turn: turn ?? null,
          session: handle ?? null,
          question: asked ? { ...asked, ...PENDING } : open && { ...open, ...resolve },
        }
      : before,
    ...rest,
  };
}

// The state that an append leads to, if it changes the state.
export function newStatus({ before, after }: RunAppend): RunRecord['status'] | undefined {
  return after.status === before.status ? undefined : after.status;
}

export const ask = (id: string, rest: Partial<Ask> = {}): Ask => ({
  interaction_id: id,
  attempt_number: 1,
  question: { kind: 'open_text', prompt: 'Which?', options: [] },
  asked_at: T0,
  due_at: T0 + 1000,
  decides: false,
  ...rest,
});

const turn = (
  attempt: number,
  units: number,
  parsed: number,
  warnings: Record<string, number>,
  unknown?: string,
): TurnCounts => ({
  attempt_number: attempt,
  parser: {
    profile: 'codex_ndjson',
    units,
    parsed,
    fallbacks: units - parsed,
    hit_rate: units === 0 ? null : parsed / units,
    warnings,
  },
  completion:
    unknown === undefined
      ? { result: 'completed', reason_code: 'ENGINE_SUCCESS' }
      : { result: 'unknown', reason_code: unknown },
});

const resolution = (at: number) => ({ at, response: null, actor: null, idempotency_key: null, finish: false });

export const delivery = (
  id: string,
  hook = 'chat',
  payload: NewDelivery['payload'] = { text: 'é 漢字' },
): NewDelivery => ({ delivery_id: id, hook, type: 'run.waiting_user', payload });

export interface StoreUnderTest {
  readonly store: Store;
  // A direct statement on the tables, which have the same names in each store.
  execute(sql: string): Promise<void>;
  // Moves every flush into a segment, for stores that do this later.
  merge?(): Promise<void>;
  cleanup(): Promise<void>;
}

// Text that Parley cannot have written: not JSON, or JSON of another form.
const NOT_OURS = ['{', 'null', '[]', '"text"', '7', '{}'];

export function describeStore(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`the ${name} store`, () => {
    let store: Store;
    let execute: StoreUnderTest['execute'];
    let merge: StoreUnderTest['merge'];
    let cleanup: () => Promise<void>;

    beforeEach(async () => {
      ({ store, execute, merge, cleanup } = await open());
    });
    afterEach(async () => {
      await cleanup();
    });

    async function create(number = 1, changes: Partial<NewRun> = {}): Promise<RunRecord> {
      const outcome = await store.createRun(newRun(number, changes));
      if (!outcome.created) throw new Error(outcome.reason);
      return outcome.run;
    }

    async function commit(run: RunRecord, rest: RowEdit = {}): Promise<RunRecord> {
      expect(await store.append(change(run, rest))).toMatchObject({ committed: true });
      return (await store.loadRun(run.run_id)) as RunRecord;
    }

    test('a run that was created is there, queued, with its first events', async () => {
      const run = await create();
      expect(run).toMatchObject({
        run_id: 'run_0001',
        status: 'queued',
        attempt_number: 1,
        epoch: 0,
        error: null,
        result: null,
        cancel_requested: null,
        spec: newRun(1).spec,
      });
      expect(run.heads).toEqual({
        rasp_seq: 2,
        fcmp_seq: 2,
        ts: T0 + 2,
        digest: nextDigest(FIRST_DIGEST, newRun(1).journal.rasp.bytes),
      });
      expect(await store.loadRun(run.run_id)).toEqual(run);
      expect(await store.loadRun('run_none')).toBeNull();
      expect(await store.listQueued(10)).toEqual(['run_0001']);
    });

    test('the same request id returns the first run, and whether the body was the same', async () => {
      const run = await create();
      expect(await store.createRun(newRun(2, { request_id: 'req_0001' }))).toEqual({
        created: false,
        reason: 'known',
        run,
        sameRequest: true,
      });
      expect(await store.createRun(newRun(3, { request_id: 'req_0001', request_digest: 'other' }))).toMatchObject({
        created: false,
        sameRequest: false,
      });
      expect(await store.loadRun('run_0002')).toBeNull();
    });

    test('a change is committed whole: state, handle, question and events', async () => {
      const run = await create();
      const running = await commit(run, { set: { status: 'running', epoch: 1 }, journal: flush(3, 1, 3, T0 + 10) });
      expect(running).toMatchObject({ status: 'running', epoch: 1, updated_at: T0 + 5000 });
      const waiting = await commit(running, {
        set: { status: 'waiting_user' },
        handle: HANDLE,
        ask: ask('int_1'),
        journal: flush(4, 2, 4, T0 + 20),
      });
      expect(waiting).toMatchObject({ status: 'waiting_user', heads: { rasp_seq: 5, fcmp_seq: 5 } });
      expect(await store.loadHandle(run.request_id)).toEqual(HANDLE);
      expect(await store.loadPendingInteraction(run.run_id)).toMatchObject({
        interaction_id: 'int_1',
        state: 'pending',
        question: { prompt: 'Which?' },
        resolution: null,
      });
      expect(await store.listQueued(10)).toEqual([]);
    });

    test('a change that expects another status, epoch or seq is refused and leaves nothing behind', async () => {
      const run = await create();
      const wrong: [NonNullable<RowEdit['expect']>, string][] = [
        [{ status: 'running', epoch: 0, rasp_seq: 2 }, 'status'],
        [{ status: 'queued', epoch: 1, rasp_seq: 2 }, 'epoch'],
        [{ status: 'queued', epoch: 0, rasp_seq: 1 }, 'seq'],
      ];
      for (const [expected, reason] of wrong) {
        const outcome = await store.append(
          change(run, {
            expect: expected,
            set: { status: 'failed' },
            handle: HANDLE,
            ask: ask('int_1'),
            journal: flush(3, 1, null),
          }),
        );
        expect(outcome).toEqual({ committed: false, reason });
      }
      expect(await store.append(change({ ...run, run_id: 'run_none' }))).toEqual({
        committed: false,
        reason: 'unknown_run',
      });
      expect(await store.loadRun(run.run_id)).toEqual(run);
      expect(await store.loadHandle(run.request_id)).toBeNull();
      expect(await store.loadInteraction('int_1')).toBeNull();
      expect(await store.readJournal(run.run_id, 'rasp', { limit: 100 })).toHaveLength(2);
    });

    test('a change that breaks a promise is thrown out whole', async () => {
      const run = await create();
      const broken: RowEdit[] = [
        { journal: flush(4, 1, null) },
        { journal: flush(3, 1, 7) },
        { journal: flush(3, 1, null, T0 - 1000) },
        { journal: { ...flush(3, 1, null), rasp: { ...lines(3, 1), lastSeq: 4 } } },
      ];
      for (const rest of broken)
        await expect(store.append(change(run, { set: { status: 'failed' }, ...rest }))).rejects.toThrow();
      expect(await store.loadRun(run.run_id)).toEqual(run);
    });

    test('a question is resolved once, and a run has one at a time', async () => {
      const run = await commit(await create(), { set: { status: 'waiting_user' }, ask: ask('int_1') });
      await expect(store.append(change(run, { ask: ask('int_2') }))).rejects.toThrow();
      const resolution = {
        at: T0 + 9,
        response: { choice: 'é' },
        actor: { kind: 'user', name: 'ann' },
        idempotency_key: 'k',
        finish: false,
      } as const;
      const answered = await commit(run, {
        set: { status: 'queued', attempt_number: 2 },
        resolve: { interaction_id: 'int_1', state: 'answered', resolution },
      });
      expect(await store.loadInteraction('int_1')).toMatchObject({ state: 'answered', resolution });
      expect(await store.loadPendingInteraction(run.run_id)).toBeNull();
      expect((await store.loadLatestInteraction(run.run_id))?.interaction_id).toBe('int_1');
      expect((await store.loadInteractionByKey(run.run_id, 'k'))?.interaction_id).toBe('int_1');
      expect([
        await store.loadInteractionByKey(run.run_id, 'other'),
        await store.loadInteractionByKey('run_none', 'k'),
      ]).toEqual([null, null]);
      const again = await store.append(
        change(answered, {
          set: { status: 'queued' },
          resolve: { interaction_id: 'int_1', state: 'answered', resolution },
        }),
      );
      expect(again).toEqual({ committed: false, reason: 'interaction' });
      await commit(answered, { ask: ask('int_2', { asked_at: T0 + 1 }) });
      expect((await store.loadLatestInteraction(run.run_id))?.interaction_id).toBe('int_2');
      expect(await store.loadLatestInteraction('run_none')).toBeNull();
      expect((await store.listInteractions(run.run_id)).map(({ interaction_id: id, state }) => [id, state])).toEqual([
        ['int_1', 'answered'],
        ['int_2', 'pending'],
      ]);
      expect(await store.listInteractions('run_none')).toEqual([]);
    });

    test('of a hundred changes that expect the same state exactly one is committed', async () => {
      const run = await commit(await create(), { set: { status: 'waiting_user' }, ask: ask('int_1') });
      const outcomes = await Promise.all(
        Array.from({ length: 100 }, (_, index) =>
          store.append(
            change(run, {
              set: { status: 'queued' },
              resolve: {
                interaction_id: 'int_1',
                state: 'answered',
                resolution: { at: T0, response: index, actor: null, idempotency_key: null, finish: false },
              },
              journal: flush(3, 1, null, T0 + 100),
            }),
          ),
        ),
      );
      expect(outcomes.filter((outcome) => outcome.committed)).toHaveLength(1);
    });

    test('the journal is read by seq and by time, in order, byte for byte', async () => {
      let run = await create(1, { journal: flush(1, 3, 1, T0) });
      for (let seq = 4; seq <= 13; seq += 5) run = await commit(run, { journal: flush(seq, 5, seq, T0 + seq * 10) });
      const all = await store.readJournal(run.run_id, 'rasp', { limit: 1000 });
      const seqs = async (range: object) =>
        (await store.readJournal(run.run_id, 'rasp', { limit: 1000, ...range })).map(
          (line) => (JSON.parse(line) as { seq: number }).seq,
        );
      expect(all).toHaveLength(13);
      expect(`${all.join('\n')}\n`).toBe(
        Buffer.concat([lines(1, 3, T0).bytes, lines(4, 5, T0 + 40).bytes, lines(9, 5, T0 + 90).bytes]).toString(),
      );
      expect(await seqs({ fromSeq: 3, toSeq: 10 })).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
      expect(await seqs({ fromSeq: 6, limit: 2 })).toEqual([6, 7]);
      expect(await seqs({ fromSeq: 14 })).toEqual([]);
      expect(await seqs({ fromTs: T0 + 42, toTs: T0 + 91 })).toEqual([6, 7, 8, 9, 10]);
      expect(await seqs({ fromTs: T0 + 42, fromSeq: 8, limit: 1 })).toEqual([8]);
      expect(await store.readJournal(run.run_id, 'fcmp', { fromSeq: 13, limit: 5 })).toHaveLength(1);
    });

    test('whole lines after a seq come as many as fit, at least one, across flushes and from within them', async () => {
      let run = await create(1, { journal: flush(1, 3, 1, T0) });
      for (let seq = 4; seq <= 13; seq += 5) run = await commit(run, { journal: flush(seq, 5, seq, T0 + seq * 10) });
      const all = (await store.readJournal(run.run_id, 'rasp', { limit: 1000 })).map((line) =>
        Buffer.from(`${line}\n`),
      );
      const starts = all.map((_, index) => Buffer.concat(all.slice(0, index)).length);
      const bytes = Buffer.concat(all);
      const cut = (after: number, last: number) => ({
        firstSeq: after + 1,
        lastSeq: last,
        bytes: bytes.subarray(starts[after], starts[last] ?? bytes.length),
      });
      for (let after = 0; after < 13; after += 1) {
        expect(await store.readLines(run.run_id, 'rasp', after, 1_000_000)).toEqual(cut(after, 13));
        expect(await store.readLines(run.run_id, 'rasp', after, 1)).toEqual(cut(after, after + 1));
        for (let last = after + 1; last <= 13; last += 1) {
          const size = cut(after, last).bytes.length;
          expect(await store.readLines(run.run_id, 'rasp', after, size)).toEqual(cut(after, last));
          expect(await store.readLines(run.run_id, 'rasp', after, size - 1)).toEqual(
            cut(after, Math.max(after + 1, last - 1)),
          );
        }
      }
      expect(await store.readLines(run.run_id, 'rasp', 13, 100)).toBeNull();
      expect(await store.readLines('run_none', 'rasp', 0, 100)).toBeNull();
      expect(
        (await store.listSegments(run.run_id, 'rasp')).reduce(
          (next, { seq_from: from, seq_to: to }) => (from === next && to >= from ? to + 1 : -1),
          1,
        ),
      ).toBe(14);
      expect(await store.listSegments('run_none', 'rasp')).toEqual([]);
      const segments = await store.readSegments(run.run_id, 'rasp', FIRST_SEGMENT, 1_000_000);
      expect(segments.map(({ body: _body, ...range }) => range)).toEqual(await store.listSegments(run.run_id, 'rasp'));
      expect(Buffer.concat(segments.map(({ body }) => body)).equals(bytes)).toBe(true);
      for (const [index, { seq_from: from, body }] of segments.entries()) {
        const after = segments[index - 1]?.seq_from ?? FIRST_SEGMENT;
        const next = segments[index + 1]?.body.length ?? 0;
        for (const [maxBytes, count] of [
          [1, 1],
          [body.length, 1],
          [body.length + next, next === 0 ? 1 : 2],
        ] as const)
          expect(
            (await store.readSegments(run.run_id, 'rasp', after, maxBytes)).map(({ seq_from: seq }) => seq),
          ).toEqual(segments.slice(index, index + count).map(({ seq_from: seq }) => seq));
        expect(await store.readSegments(run.run_id, 'rasp', from, 1_000_000)).toEqual(segments.slice(index + 1));
      }
      expect(await store.readSegments('run_none', 'rasp', FIRST_SEGMENT, 100)).toEqual([]);
    });

    test('large flushes are read like small ones: by seq, by time, from within, and for the digest', async () => {
      let run = await create(1, { journal: flush(1, 3, 1, T0) });
      const all = [lines(1, 3, T0)];
      for (const [from, count] of [
        [4, 2000],
        [2004, 2],
        [2006, 1500],
      ] as const) {
        const { fcmp, ...journal } = flush(from, count, from, T0 + from);
        run = await commit(run, {
          journal: { ...journal, fcmp: fcmp && { ...fcmp, bytes: from === 2004 ? fcmp.bytes : converse(fcmp.bytes) } },
        });
        all.push(lines(from, count, T0 + from));
      }
      const expected = {
        rasp: Buffer.concat(all.map((each) => each.bytes)),
        fcmp: Buffer.concat(
          all.map((each) => (each.lastSeq - each.firstSeq > 1000 ? converse(each.bytes) : each.bytes)),
        ),
      };
      // In turns, as in readers of both.
      for (const after of [10, 3000])
        for (const protocol of ['rasp', 'fcmp', 'rasp'] as const)
          expect((await store.readLines(run.run_id, protocol, after, 200))?.bytes.includes('"said"')).toBe(
            protocol === 'fcmp',
          );
      for (const protocol of ['rasp', 'fcmp'] as const) {
        const bytes = expected[protocol];
        expect(`${(await store.readJournal(run.run_id, protocol, { limit: 10_000 })).join('\n')}\n`).toBe(
          bytes.toString(),
        );
        const pieces: Buffer[] = [];
        for (let seq = 0; seq < 3505;) {
          const read = await store.readLines(run.run_id, protocol, seq, 20_000);
          expect(read?.firstSeq).toBe(seq + 1);
          pieces.push(read?.bytes ?? Buffer.alloc(0));
          seq = read?.lastSeq ?? Infinity;
        }
        expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
        expect(
          (await store.readJournal(run.run_id, protocol, { fromSeq: 1999, toSeq: 2010, limit: 100 })).map(
            (line) => (JSON.parse(line) as { seq: number }).seq,
          ),
        ).toEqual([1999, 2000, 2001, 2002, 2003, 2004, 2005, 2006, 2007, 2008, 2009, 2010]);
        expect(await store.readJournal(run.run_id, protocol, { fromTs: T0 + 2006 + 1499, limit: 100 })).toHaveLength(1);
      }
      expect(await store.recomputeDigest(run.run_id)).toBe(run.heads.digest);
      expect(run.heads.digest).toBe(all.reduce((digest, each) => nextDigest(digest, each.bytes), FIRST_DIGEST));
    });

    test('the digest is chained over the flushes, so the same events in other flushes have another one', async () => {
      const one = await commit(await create(1, { journal: flush(1, 1, null, T0) }), {
        journal: flush(2, 1, null, T0 + 1),
      });
      expect(one.heads.digest).toBe(
        nextDigest(nextDigest(FIRST_DIGEST, lines(1, 1, T0).bytes), lines(2, 1, T0 + 1).bytes),
      );
    });

    test('FCMP may stay behind and catch up', async () => {
      const run = await commit(await create(), { journal: flush(3, 4, null, T0 + 10) });
      expect(run.heads).toMatchObject({ rasp_seq: 6, fcmp_seq: 2 });
      expect((await commit(run, { journal: flush(7, 1, 3, T0 + 20) })).heads).toMatchObject({
        rasp_seq: 7,
        fcmp_seq: 3,
      });
    });

    test('runs are listed newest first, filtered and in pages', async () => {
      for (let number = 1; number <= 5; number += 1)
        await create(
          number,
          number === 3 ? { spec: { ...newRun(3).spec, engine: 'gemini', labels: { team: 'b' } } } : {},
        );
      await commit((await store.loadRun('run_0002')) as RunRecord, { set: { status: 'running' } });
      const ids = async (filter: object) => {
        const listed = (await store.listRuns({ limit: 10, ...filter })).map((run) => run.run_id);
        expect(await store.listRunIds({ limit: 10, ...filter })).toEqual(listed);
        return listed;
      };
      expect(await ids({})).toEqual(['run_0005', 'run_0004', 'run_0003', 'run_0002', 'run_0001']);
      expect(await ids({ limit: 2, before: 'run_0004' })).toEqual(['run_0003', 'run_0002']);
      expect(await ids({ status: 'running' })).toEqual(['run_0002']);
      expect(await ids({ engine: 'gemini' })).toEqual(['run_0003']);
      expect(await ids({ label: { key: 'team', value: 'b' } })).toEqual(['run_0003']);
      expect(await ids({ label: { key: 'team', value: 'a' }, status: 'queued' })).toEqual([
        'run_0005',
        'run_0004',
        'run_0001',
      ]);
    });

    test('runs are found by the end and by the beginning of their ids', async () => {
      for (let number = 1; number <= 5; number += 1) await create(number);
      expect(await store.listByTail(['n_0004', 'n_0002', 'n_0004', 'n_9999'])).toHaveLength(2);
      expect(new Set(await store.listByTail(['n_0004', 'n_0002']))).toEqual(new Set(['run_0004', 'run_0002']));
      expect(await store.listByTail([])).toEqual([]);
      expect(await store.listByPrefix('run_000', 3)).toEqual(['run_0005', 'run_0004', 'run_0003']);
      expect(await store.listByPrefix('run_0002', 9)).toEqual(['run_0002']);
      expect(await store.listByPrefix('run_1', 9)).toEqual([]);
    });

    test('ended runs are listed in the order in which they ended, page by page', async () => {
      const home = '/data/runs/run_0003/home';
      const { spec } = newRun(1);
      for (const [number, status, at] of [
        [1, 'succeeded', 50],
        [2, 'failed', 40],
        [3, 'canceled', 40],
        [4, 'waiting_user', 10],
        [6, 'succeeded', 90],
      ] as const)
        await commit(await create(number, number === 3 ? { spec: { ...spec, home } } : {}), {
          set: { status },
          now: T0 + at,
        });
      await create(5);
      const all = await store.listEnded({ before: T0 + 90, limit: 9 });
      expect(all).toEqual([
        { run_id: 'run_0002', updated_at: T0 + 40, home: null, continues: false },
        { run_id: 'run_0003', updated_at: T0 + 40, home, continues: false },
        { run_id: 'run_0001', updated_at: T0 + 50, home: null, continues: false },
      ]);
      expect(await store.listEnded({ before: T0 + 90, limit: 1, after: all[0] })).toEqual([all[1]]);
      expect(await store.listEnded({ before: T0 + 91, limit: 9, after: all[2] })).toMatchObject([
        { run_id: 'run_0006' },
      ]);
    });

    test('queued runs wait in the order in which they were queued, also after an answer', async () => {
      await create(1);
      await create(2);
      const first = await commit((await store.loadRun('run_0001')) as RunRecord, {
        set: { status: 'waiting_user' },
        ask: ask('int_1'),
      });
      await commit(first, { set: { status: 'queued' }, now: T0 + 9000 });
      expect(await store.listQueued(10)).toEqual(['run_0002', 'run_0001']);
      expect(await store.listQueued(1)).toEqual(['run_0002']);
    });

    test('pending questions are listed oldest first, and the next decision is the earliest one allowed', async () => {
      for (const [number, rest] of [
        [1, { asked_at: T0 + 30, due_at: T0 + 50, decides: true }],
        [2, { asked_at: T0 + 10, due_at: T0 + 40, decides: false }],
        [3, { asked_at: T0 + 20, due_at: T0 + 60, decides: true }],
      ] as const) {
        await commit(await create(number), { set: { status: 'waiting_user' }, ask: ask(`int_${number}`, rest) });
      }
      expect((await store.listPending({ limit: 10 })).map((each) => each.interaction_id)).toEqual([
        'int_2',
        'int_3',
        'int_1',
      ]);
      expect((await store.listPending({ limit: 1 })).map((each) => each.interaction_id)).toEqual(['int_2']);
      expect((await store.nextDecision())?.interaction_id).toBe('int_1');
    });

    test('pending questions are found by engine, label and lateness, and page by page', async () => {
      for (const [number, engine, labels] of [
        [1, 'codex', { team: 'a' }],
        [2, 'gemini', { team: 'b' }],
        [3, 'codex', { team: 'b' }],
      ] as const) {
        const { spec } = newRun(number);
        await commit(await create(number, { spec: { ...spec, engine, labels } }), {
          set: { status: 'waiting_user' },
          ask: ask(`int_${number}`, { asked_at: T0 + number, due_at: T0 + number * 100 }),
        });
      }
      const ids = async (filter: object) =>
        (await store.listPending({ limit: 10, ...filter })).map((each) => each.interaction_id);
      expect(await ids({ engine: 'codex' })).toEqual(['int_1', 'int_3']);
      expect(await ids({ label: { key: 'team', value: 'b' } })).toEqual(['int_2', 'int_3']);
      expect(await ids({ overdueAt: T0 + 201 })).toEqual(['int_1', 'int_2']);
      expect(await ids({ overdueAt: T0 + 100 })).toEqual([]);
      expect(await ids({ after: { asked_at: T0 + 1, interaction_id: 'int_1' } })).toEqual(['int_2', 'int_3']);
      expect(await ids({ after: { asked_at: T0 + 2, interaction_id: 'int_1' }, limit: 1 })).toEqual(['int_2']);
      expect(await store.countPending(T0 + 201)).toEqual({ pending: 3, overdue: 2 });
      expect(await store.countRuns()).toEqual({
        queued: 0,
        running: 0,
        waiting_user: 3,
        succeeded: 0,
        failed: 0,
        canceled: 0,
      });
    });

    test('a terminal run is deleted with all its rows, another is not', async () => {
      const run = await commit(await create(), { set: { status: 'waiting_user' }, ask: ask('int_1') });
      expect(await store.deleteRun(run.run_id)).toBe('not_ended');
      await commit(run, {
        set: { status: 'canceled', error: { code: 'CANCELED_BY_USER', message: 'x' } },
        resolve: {
          interaction_id: 'int_1',
          state: 'canceled',
          resolution: { at: T0, response: null, actor: null, idempotency_key: null, finish: false },
        },
      });
      expect(await store.deleteRun(run.run_id)).toBe('deleted');
      expect(await store.deleteRun(run.run_id)).toBe('unknown_run');
      expect([
        await store.loadRun(run.run_id),
        await store.loadInteraction('int_1'),
        await store.loadHandle(run.request_id),
      ]).toEqual([null, null, null]);
      expect(await store.readJournal(run.run_id, 'rasp', { limit: 10 })).toEqual([]);
      expect((await store.createRun(newRun(1))).created).toBe(true);
    });

    test('a run whose home another run has is not deleted before that one', async () => {
      const spec = { ...newRun(1).spec, home: '/data/runs/run_0001/home' };
      const ended = { set: { status: 'succeeded' } } as const;
      await commit(await create(1, { spec }), ended);
      await commit(await create(2, { spec: { ...spec, continue_from: 'run_0001' } }), ended);
      await commit(await create(3), ended);
      expect(await store.deleteRun('run_0001')).toBe('session_in_use');
      expect(await store.loadRun('run_0001')).not.toBeNull();
      expect(await store.deleteRun('run_0003')).toBe('deleted');
      expect(await store.deleteRun('run_0002')).toBe('deleted');
      expect(await store.deleteRun('run_0001')).toBe('deleted');
    });

    test('another run is found by the home that it lives in, ended or not', async () => {
      const spec = { ...newRun(1).spec, home: '/data/runs/one/home' };
      await commit(await create(1, { spec }), { set: { status: 'canceled' } });
      expect(await store.findInHome('/data/runs/one/home', 'run_0001')).toBeNull();
      await create(2, { spec: { ...spec, home: '/data/runs/two/home' } });
      await commit(await create(3, { spec: { ...spec, continue_from: 'run_0001' } }), { set: { status: 'canceled' } });
      expect(await store.findInHome('/data/runs/one/home', 'run_0001')).toBe('run_0003');
      expect(await store.findInHome('/data/runs/one/home', 'run_0003')).toBe('run_0001');
      expect(await store.findInHome('/data/runs/one', 'run_0001')).toBeNull();
    });

    test('a run is not deleted while another works in its folder', async () => {
      const spec = { ...newRun(1).spec, home: '/data/runs/run_0001/home', cwd: '/data/runs/run_0001/workspace' };
      await commit(await create(1, { spec }), { set: { status: 'canceled' } });
      const fork = await create(2, { spec: { ...spec, home: '/data/runs/run_0002/home' } });
      expect(await store.deleteRun('run_0001')).toBe('session_in_use');
      await commit(fork, { set: { status: 'canceled' } });
      expect(await store.deleteRun('run_0001')).toBe('deleted');
    });

    test('a run that has not ended is found by the folder that it works in', async () => {
      const spec = { ...newRun(1).spec, cwd: '/srv/one' };
      const first = await create(1, { spec });
      await create(2, { spec: { ...spec, cwd: '/srv/one/within' } });
      expect(await store.findAtWork('/srv/one')).toBe('run_0001');
      expect(await store.findAtWork('/srv')).toBeNull();
      await commit(first, { set: { status: 'canceled' } });
      expect(await store.findAtWork('/srv/one')).toBeNull();
    });

    test('a full queue refuses a new run; a known request still gets its run, other states do not count', async () => {
      const first = await create(1, { queue_limit: 1 });
      expect(await store.createRun(newRun(2, { queue_limit: 1 }))).toEqual({
        created: false,
        reason: 'queue_full',
        queued: 1,
      });
      expect(await store.loadRun('run_0002')).toBeNull();
      expect(await store.createRun(newRun(1, { queue_limit: 1 }))).toMatchObject({
        created: false,
        reason: 'known',
        sameRequest: true,
      });
      await commit(first, { set: { status: 'running' } });
      expect((await store.createRun(newRun(2, { queue_limit: 1 }))).created).toBe(true);
    });

    test('turns are summed by engine and profile, for all runs or one, unknown completions by reason', async () => {
      expect(await store.sumTurns()).toEqual([]);
      const one = await commit(await create(1), { turn: turn(1, 10, 9, { LINE_UNDECODABLE: 1 }) });
      await commit(one, { turn: turn(2, 0, 0, {}, 'NO_TURN_COMPLETED') });
      await commit(await create(2), {
        turn: turn(1, 30, 21, { LINE_UNDECODABLE: 8, FIELD_DRIFT: 1 }, 'NO_TURN_COMPLETED'),
      });
      await commit(await create(3, { spec: { ...newRun(3).spec, engine: 'gemini' } }), {
        turn: { ...turn(1, 0, 0, {}), parser: { ...turn(1, 0, 0, {}).parser, profile: 'gemini_json' } },
      });
      expect(await store.sumTurns()).toEqual([
        {
          engine: 'codex',
          profile: 'codex_ndjson',
          turns: 3,
          units: 40,
          parsed: 30,
          fallbacks: 10,
          hit_rate: 0.75,
          warnings: { FIELD_DRIFT: 1, LINE_UNDECODABLE: 9 },
          unknown: { NO_TURN_COMPLETED: 2 },
        },
        {
          engine: 'gemini',
          profile: 'gemini_json',
          turns: 1,
          units: 0,
          parsed: 0,
          fallbacks: 0,
          hit_rate: null,
          warnings: {},
          unknown: {},
        },
      ]);
      expect(await store.sumTurns('run_0001')).toEqual([
        {
          engine: 'codex',
          profile: 'codex_ndjson',
          turns: 2,
          units: 10,
          parsed: 9,
          fallbacks: 1,
          hit_rate: 0.9,
          warnings: { LINE_UNDECODABLE: 1 },
          unknown: { NO_TURN_COMPLETED: 1 },
        },
      ]);
      await expect(
        store.append(change((await store.loadRun('run_0001')) as RunRecord, { turn: turn(2, 1, 1, {}) })),
      ).rejects.toThrow();
    });

    test('the counts of a deleted run stay in the sum over all runs', async () => {
      const parts = { LINE_UNDECODABLE: 1 };
      const one = await commit(await create(1), { turn: turn(1, 10, 9, parts) });
      await commit(one, { turn: turn(2, 6, 6, {}, 'NO_TURN_COMPLETED'), set: { status: 'failed' } });
      await commit(await create(2), {
        turn: turn(1, 30, 21, { LINE_UNDECODABLE: 8, FIELD_DRIFT: 1 }, 'NO_TURN_COMPLETED'),
        set: { status: 'succeeded' },
      });
      await commit(await create(3), { turn: turn(1, 4, 4, {}, 'NO_TURN_COMPLETED'), set: { status: 'succeeded' } });
      const before = await store.sumTurns();
      expect(before).toMatchObject([
        {
          turns: 4,
          units: 50,
          parsed: 40,
          warnings: { FIELD_DRIFT: 1, LINE_UNDECODABLE: 9 },
          unknown: { NO_TURN_COMPLETED: 3 },
        },
      ]);
      for (const id of ['run_0001', 'run_0002', 'run_0003']) {
        expect(await store.deleteRun(id)).toBe('deleted');
        expect(await store.sumTurns()).toEqual(before);
      }
      expect(await store.sumTurns('run_0001')).toEqual([]);
      // A run that is not deleted adds nothing.
      await commit(await create(4), { turn: turn(1, 1, 1, {}) });
      expect(await store.deleteRun('run_0004')).toBe('not_ended');
      expect(await store.sumTurns()).toMatchObject([{ turns: 5, units: 51 }]);
    });

    test('damaged counts of a turn fail neither the sum nor the deletion', async () => {
      await commit(await create(1), { turn: turn(1, 10, 9, { FIELD_DRIFT: 1 }), set: { status: 'failed' } });
      await commit(await create(2), { turn: turn(1, 5, 5, { FIELD_DRIFT: 2 }), set: { status: 'failed' } });
      await execute(`UPDATE turns SET warnings_json = '{' WHERE run_id = 'run_0001'`);
      expect(await store.sumTurns()).toMatchObject([{ turns: 2, units: 15, warnings: { FIELD_DRIFT: 3 } }]);
      expect(await store.findWrongTotals()).toEqual([]);
      expect(await store.deleteRun('run_0001')).toBe('deleted');
      expect(await store.sumTurns()).toMatchObject([{ turns: 2, units: 15, warnings: { FIELD_DRIFT: 3 } }]);
    });

    test('a huge count is left out of the totals, and a huge total is read as 0', async () => {
      const huge = 9_007_199_254_740_991;
      await commit(await create(1), { turn: turn(1, huge, 5, { FIELD_DRIFT: huge }), set: { status: 'failed' } });
      await commit(await create(2), { turn: turn(1, 5, 5, { FIELD_DRIFT: 1 }), set: { status: 'failed' } });
      const expected = [{ turns: 2, units: 5, parsed: 10, warnings: { FIELD_DRIFT: 1 } }];
      expect(await store.sumTurns()).toMatchObject(expected);
      expect(await store.findWrongTotals()).toEqual([]);
      await execute(`UPDATE totals SET count = 9223372036854775807 WHERE measure = 'parsed'`);
      await commit(await create(3), { turn: turn(1, 5, 5, {}), set: { status: 'failed' } });
      expect(await store.sumTurns()).toMatchObject([{ turns: 3, units: 10, parsed: 0 }]);
      await store.recountTotals();
      expect(await store.sumTurns()).toMatchObject([{ turns: 3, units: 10, parsed: 15 }]);
    });

    test('the totals follow every change of a row, also one that the store did not make', async () => {
      const states = async () => [
        Object.entries(await store.countRuns()).filter(([, count]) => count > 0),
        await store.countPending(T0),
        await store.countDeliveries(),
        await store.findWrongTotals(),
      ];
      expect(await states()).toEqual([[], { pending: 0, overdue: 0 }, { pending: 0, given_up: 0 }, []]);
      const waiting = await commit(await create(1), {
        set: { status: 'waiting_user' },
        ask: ask('int_1'),
        deliveries: [delivery('dlv_1')],
      });
      await create(2);
      expect(await states()).toEqual([
        [
          ['queued', 1],
          ['waiting_user', 1],
        ],
        { pending: 1, overdue: 0 },
        { pending: 1, given_up: 0 },
        [],
      ]);
      await execute(`UPDATE runs SET status = 'failed' WHERE run_id = 'run_0002'`);
      await execute(`UPDATE interactions SET state = 'abandoned'`);
      await execute(`UPDATE deliveries SET state = 'given_up'`);
      expect(await states()).toEqual([
        [
          ['waiting_user', 1],
          ['failed', 1],
        ],
        { pending: 0, overdue: 0 },
        { pending: 0, given_up: 1 },
        [],
      ]);
      await execute(`UPDATE interactions SET state = 'pending'`);
      expect(await store.deleteRun(waiting.run_id, { damaged: true })).toBe('deleted');
      expect(await states()).toEqual([[['failed', 1]], { pending: 0, overdue: 0 }, { pending: 0, given_up: 0 }, []]);
    });

    test('wrong totals are found, and counted again without losing those of deleted runs', async () => {
      for (const number of [1, 2])
        await commit(await create(number), { turn: turn(1, 10, 9, { FIELD_DRIFT: 1 }), set: { status: 'failed' } });
      await store.deleteRun('run_0001');
      const before = await store.sumTurns();
      await execute(`UPDATE totals SET count = 7 WHERE subject = 'runs' AND measure = 'failed' AND count > 0`);
      await execute(`DELETE FROM totals WHERE measure = 'units'`);
      expect((await store.findWrongTotals()).map(({ name }) => name)).toEqual([
        'runs failed',
        'turns codex codex_ndjson units',
      ]);
      await store.recountTotals();
      expect(await store.findWrongTotals()).toEqual([]);
      expect(await store.countRuns()).toMatchObject({ queued: 0, failed: 1 });
      expect(await store.sumTurns()).toEqual([{ ...before[0], units: 10, hit_rate: 1.8 }]);
    });

    test('runs with a label are listed page by page, also with a state and an engine', async () => {
      for (let number = 1; number <= 30; number += 1) {
        const spec = {
          ...newRun(number).spec,
          engine: number % 5 === 0 ? 'gemini' : 'codex',
          labels: { team: number % 2 === 0 ? 'a' : 'b', ...(number % 3 === 0 ? { third: 'yes' } : {}) },
        };
        const run = await create(number, { spec });
        if (number % 4 < 2) await commit(run, { set: { status: 'failed' } });
      }
      const all = Array.from({ length: 30 }, (_, index) => 30 - index);
      const team = { key: 'team', value: 'a' };
      for (const [filter, isMatch] of [
        [{ label: team }, (n: number) => n % 2 === 0],
        [{ label: team, status: 'failed' }, (n: number) => n % 4 === 0],
        [{ label: team, engine: 'gemini' }, (n: number) => n % 10 === 0],
        [{ label: team, status: 'queued', engine: 'codex' }, (n: number) => n % 4 === 2 && n % 5 !== 0],
        [{ label: { key: 'third', value: 'yes' }, engine: 'gemini' }, (n: number) => n % 15 === 0],
        [{ label: { key: 'third', value: 'no' }, status: 'failed' }, () => false],
        [{ label: team, status: 'canceled' }, () => false],
      ] as const) {
        const expected = all.filter(isMatch).map((number) => newRun(number).run_id);
        const listed: string[] = [];
        for (let before: { before?: string } = {}; ;) {
          const page = await store.listRunIds({ ...filter, ...before, limit: 2 });
          expect((await store.summaries.listRuns({ ...filter, ...before, limit: 2 })).map((run) => run.run_id)).toEqual(
            page,
          );
          listed.push(...page);
          if (page.length < 2) break;
          before = { before: page.at(-1) ?? '' };
        }
        expect(listed, JSON.stringify(filter)).toEqual(expected);
      }
    });

    test.each(['spec_json', 'error_json', 'cancel_requested_json'])(
      'a run with a damaged %s can be salvaged and deleted, and hides no other',
      async (column) => {
        for (const number of [1, 2, 3]) await commit(await create(number), { set: { status: 'failed' } });
        for (const text of NOT_OURS) {
          await execute(`UPDATE runs SET ${column} = '${text}' WHERE run_id = 'run_0002'`);
          await expect(store.loadRun('run_0002'), text).rejects.toThrow(DamagedDataError);
          const salvaged = await store.salvageRun('run_0002');
          expect(salvaged, text).toMatchObject({
            run: {
              run_id: 'run_0002',
              request_id: 'req_0002',
              status: 'failed',
              spec: { engine: 'codex' },
              heads: { rasp_seq: 2 },
            },
          });
          expect(
            salvaged?.damage.map((each) => each.text),
            text,
          ).toEqual([expect.stringContaining(`${column} of run run_0002`)]);
          expect((await store.salvageRun('run_0001'))?.damage).toEqual([]);
          expect(await store.listRunIds({ limit: 9 })).toEqual(['run_0003', 'run_0002', 'run_0001']);
          expect(await store.readJournal('run_0002', 'rasp', { limit: 9 })).toHaveLength(2);
        }
        expect(await store.deleteRun('run_0002', { damaged: true })).toBe('deleted');
        expect(await store.salvageRun('run_0002')).toBeNull();
        expect(await store.listRuns({ limit: 9 })).toHaveLength(2);
      },
    );

    test.each(['question_json', 'resolution_json'])(
      'a damaged %s hides no other question and is named by its run',
      async (column) => {
        for (const number of [1, 2, 3])
          await commit(await create(number), {
            set: { status: 'waiting_user' },
            ask: ask(`int_${number}`, { asked_at: T0 + number, due_at: T0 + number, decides: true }),
          });
        for (const text of NOT_OURS) {
          await execute(`UPDATE interactions SET ${column} = '${text}' WHERE interaction_id = 'int_1'`);
          await expect(store.loadInteraction('int_1'), text).rejects.toThrow(DamagedDataError);
          expect((await store.listPending({ limit: 2 })).map(({ interaction_id: id }) => id)).toEqual([
            'int_2',
            'int_3',
          ]);
          expect((await store.nextDecision())?.interaction_id).toBe('int_2');
          const salvaged = await store.salvageRun('run_0001');
          expect(salvaged, text).toMatchObject({ run: { status: 'waiting_user' }, pending: null });
          expect(
            salvaged?.damage.map((each) => each.text),
            text,
          ).toEqual([expect.stringContaining(`${column} of question int_1`)]);
        }
        expect(await store.loadInteractionByKey('run_0001', 'none')).toBeNull();
        expect(await store.deleteRun('run_0001')).toBe('not_ended');
        expect(await store.deleteRun('run_0001', { damaged: true })).toBe('deleted');
        expect(await store.countPending(T0)).toMatchObject({ pending: 2 });
      },
    );

    test.each([
      ['cut off', `UPDATE segments SET body = substr(body, 1, 20) WHERE run_id = 'run_0001' AND seq_from = 3`],
      ['empty', `UPDATE segments SET body = substr(body, 1, 0) WHERE run_id = 'run_0001' AND seq_from = 3`],
      ['missing', `DELETE FROM segments WHERE run_id = 'run_0001' AND seq_from = 3`],
      ['too short for its events', `UPDATE segments SET seq_to = 5 WHERE run_id = 'run_0001' AND seq_from = 3`],
    ])(
      'a piece of a journal that is %s is damage for every reader; pieces around it can be read',
      async (_what, statement) => {
        let run = await create(1);
        for (const seq of [3, 5]) {
          run = await commit(run, { journal: flush(seq, 2, seq, T0 + 10 * seq) });
          await merge?.();
        }
        await execute(statement);
        for (const protocol of ['rasp', 'fcmp'] as const) {
          await expect(store.readJournal('run_0001', protocol, { limit: 99 })).rejects.toThrow(DamagedDataError);
          await expect(store.readJournal('run_0001', protocol, { fromSeq: 3, limit: 1 })).rejects.toThrow(
            DamagedDataError,
          );
          await expect(store.readLines('run_0001', protocol, 0, 1_000_000)).rejects.toThrow(DamagedDataError);
          await expect(store.readLines('run_0001', protocol, 2, 1)).rejects.toThrow(DamagedDataError);
          expect(await store.readJournal('run_0001', protocol, { toSeq: 2, limit: 99 })).toHaveLength(2);
          expect(await store.readJournal('run_0001', protocol, { fromSeq: 5, limit: 99 })).toHaveLength(2);
          expect(await store.readJournal('run_0001', protocol, { fromTs: T0 + 50, limit: 99 })).toHaveLength(2);
          expect(await store.readLines('run_0001', protocol, 4, 1_000_000)).toMatchObject({ firstSeq: 5, lastSeq: 6 });
        }
      },
    );

    test('a damaged session handle is named by its run, and does not keep it from being deleted', async () => {
      const run = await commit(await create(), { set: { status: 'waiting_user' }, ask: ask('int_1') });
      await execute(`UPDATE request_interactive_runtime SET session_handle_json = '{'`);
      await expect(store.loadHandle(run.request_id)).rejects.toThrow(DamagedDataError);
      const salvaged = await store.salvageRun(run.run_id);
      expect(salvaged).toMatchObject({
        run,
        pending: { interaction_id: 'int_1' },
        damage: [{ text: expect.stringContaining('session_handle_json') as string }],
      });
      expect(await store.deleteRun(run.run_id, { damaged: true })).toBe('deleted');
    });

    test('columns that are no numbers, states or times are named and read as neutral values', async () => {
      await commit(await create(), { set: { status: 'failed' } });
      await execute(`UPDATE runs SET status = 'lost', created_at = 9007199254740991, epoch = 4611686018427387904`);
      const salvaged = await store.salvageRun('run_0001');
      expect(salvaged?.damage.map(({ text }) => text)).toEqual(
        ['status', 'epoch', 'created_at'].map(
          (column) => expect.stringContaining(`${column} of run run_0001`) as string,
        ),
      );
      expect(salvaged?.run).toMatchObject({ status: 'failed', epoch: 0, created_at: 0 });
      expect(await store.deleteRun('run_0001', { damaged: true })).toBe('deleted');
    });

    test('a delivery whose payload is damaged is given up and holds up no other', async () => {
      await commit(await create(), { deliveries: [delivery('dlv_1'), delivery('dlv_2')] });
      await execute(`UPDATE deliveries SET payload_json = '{' WHERE delivery_id = 'dlv_1'`);
      expect((await store.nextDelivery(T0 * 2))?.delivery_id).toBe('dlv_2');
      expect(await store.countDeliveries()).toEqual({ pending: 1, given_up: 1 });
    });

    test('how long a run has waited for people grows with each question that is resolved', async () => {
      let run = await create();
      expect(run.waited_ms).toBe(0);
      run = await commit(run, { ask: ask('int_1', { asked_at: T0 }) });
      expect(run.waited_ms).toBe(0);
      run = await commit(run, {
        resolve: { interaction_id: 'int_1', state: 'answered', resolution: resolution(T0 + 700) },
      });
      run = await commit(run, { ask: ask('int_2', { asked_at: T0 + 1000, attempt_number: 2 }) });
      run = await commit(run, {
        resolve: {
          interaction_id: 'int_2',
          state: 'auto_decided',
          resolution: resolution(T0 + 1050),
          asked_at: T0 + 1000,
        },
      });
      expect(run.waited_ms).toBe(750);
      // A clock that was set back removes nothing.
      run = await commit(run, { ask: ask('int_3', { asked_at: T0 + 1000, attempt_number: 3 }) });
      run = await commit(run, {
        resolve: { interaction_id: 'int_3', state: 'canceled', resolution: resolution(T0), asked_at: T0 + 1000 },
      });
      expect(run.waited_ms).toBe(750);
      expect((await store.listRuns({ limit: 1 })).map((each) => each.waited_ms)).toEqual([750]);
    });

    test('the digest can be computed again from the stored data', async () => {
      const run = await commit(await create(), { journal: flush(3, 4, null, T0 + 10) });
      expect(await store.recomputeDigest(run.run_id)).toBe(run.heads.digest);
    });

    test('a listener is notified after each commit, and of nothing else; an error in it changes nothing', async () => {
      const commits: unknown[] = [];
      const stop = store.onCommitted(({ run_id: runId, journal, status, asked, resolved, deleted }) => {
        commits.push([runId, journal?.rasp.lastSeq, status, asked, resolved, ...(deleted ? ['deleted'] : [])]);
        throw new Error('not our problem');
      });
      const run = await create();
      await store.createRun(newRun(1));
      const running = await commit(run, { set: { status: 'running' }, journal: flush(3, 1, null, T0 + 10) });
      const waiting = await commit(running, { set: { attempt_number: 2 }, ask: ask('int_1') });
      await commit(waiting, {
        resolve: {
          interaction_id: 'int_1',
          state: 'canceled',
          resolution: { at: T0, response: null, actor: null, idempotency_key: null, finish: false },
        },
      });
      await store.append(change(run));
      expect(await store.deleteRun(run.run_id)).toBe('not_ended');
      const other = await create(2);
      await commit(other, { set: { status: 'canceled' } });
      expect(await store.deleteRun(other.run_id)).toBe('deleted');
      stop();
      await commit((await store.loadRun(run.run_id)) as RunRecord);
      expect(commits).toEqual([
        ['run_0001', 2, 'queued', undefined, undefined],
        ['run_0001', 3, 'running', undefined, undefined],
        ['run_0001', undefined, undefined, 'int_1', undefined],
        ['run_0001', undefined, undefined, undefined, 'int_1'],
        ['run_0002', 2, 'queued', undefined, undefined],
        ['run_0002', undefined, 'canceled', undefined, undefined],
        ['run_0002', undefined, undefined, undefined, undefined, 'deleted'],
      ]);
    });

    test('a listener is notified only of runs really deleted; changes of this store have origin here', async () => {
      const commits: unknown[] = [];
      const missed = store.onMissed(() => commits.push('missed'));
      const stop = store.onCommitted(({ run_id: runId, status, deleted, origin }) =>
        commits.push([runId, status, deleted, origin]),
      );
      const run = await create();
      await store.deleteRun(run.run_id);
      await commit(run, { set: { status: 'canceled' } });
      await store.deleteRun(run.run_id);
      await store.deleteRun(run.run_id);
      expect(commits).toEqual([
        ['run_0001', 'queued', undefined, 'here'],
        ['run_0001', 'canceled', undefined, 'here'],
        ['run_0001', undefined, true, 'here'],
      ]);
      stop();
      missed();
    });

    test('every text comes back as it was, with NUL, lone surrogates and backslashes', async () => {
      const odd = 'a\u0000b\\u0000\\ \ud800 漢字 \u2028';
      const spec = {
        ...newRun(1).spec,
        prompt: odd,
        model: odd,
        runtime_options: { b: 1, a: 1e300, [odd]: odd, 10: -0.1 },
        labels: { [odd]: odd, other: '' },
      };
      const handle = { ...HANDLE, handle_value: odd };
      const run = await create(1, { spec, handle });
      expect(JSON.stringify((await store.loadRun(run.run_id))?.spec)).toBe(JSON.stringify(spec));
      expect(await store.loadHandle(run.request_id)).toEqual(handle);
      expect((await store.listRuns({ label: { key: odd, value: odd }, limit: 9 })).map((each) => each.run_id)).toEqual([
        run.run_id,
      ]);
      const waiting = await commit(run, {
        set: { status: 'waiting_user', result: { [odd]: odd }, error: { code: 'INTERNAL', message: odd } },
        ask: ask('int_1', { question: { kind: 'open_text', prompt: odd, options: [] } }),
        deliveries: [delivery('dlv_1', 'chat', { odd })],
      });
      expect(waiting).toMatchObject({ result: { [odd]: odd }, error: { message: odd } });
      const resolution = {
        at: T0,
        response: { [odd]: odd },
        actor: { kind: 'user', name: odd },
        idempotency_key: 'k',
        finish: false,
      } as const;
      await commit(waiting, {
        set: { status: 'succeeded' },
        resolve: { interaction_id: 'int_1', state: 'answered', resolution },
      });
      expect(await store.loadInteractionByKey(run.run_id, 'k')).toMatchObject({
        question: { prompt: odd },
        resolution,
      });
      expect(await store.nextDelivery(T0 + 9000)).toMatchObject({ payload: { odd } });
    });

    test('error, result and cancel wish are kept until they are set again', async () => {
      const cancelRequest = { at: T0, actor: { kind: 'user', name: 'ann' } } as const;
      const run = await commit(await create(), { set: { cancel_requested: cancelRequest, result: { ok: [1, null] } } });
      expect(run).toMatchObject({ cancel_requested: cancelRequest, result: { ok: [1, null] } });
      expect(await commit(run, { set: { error: { code: 'INTERNAL', message: 'é' } } })).toMatchObject({
        cancel_requested: cancelRequest,
        result: { ok: [1, null] },
        error: { code: 'INTERNAL', message: 'é' },
      });
    });

    test('a delivery is stored with its change and the journal after it, or not at all if refused', async () => {
      expect([await store.nextDelivery(T0 * 2), await store.nextDeliveryAt(), await store.countDeliveries()]).toEqual([
        null,
        null,
        { pending: 0, given_up: 0 },
      ]);
      const run = await create();
      const moved = await commit(run, { journal: flush(3, 2, null, T0 + 10), deliveries: [delivery('dlv_1')] });
      expect(await store.nextDelivery(T0 + 5000)).toEqual({
        ...delivery('dlv_1'),
        run_id: run.run_id,
        rasp_seq: 4,
        digest: moved.heads.digest,
        created_at: T0 + 5000,
        tries: 0,
        next_at: T0 + 5000,
        error: null,
      });
      await store.append(change(run, { deliveries: [delivery('dlv_2')] }));
      await expect(
        store.append(change(moved, { set: { status: 'running' }, deliveries: [delivery('dlv_3'), delivery('dlv_1')] })),
      ).rejects.toThrow();
      expect([await store.countDeliveries(), (await store.loadRun(run.run_id))?.status]).toEqual([
        { pending: 1, given_up: 0 },
        'queued',
      ]);
    });

    test('the delivery due first comes first, the oldest among equals; some hooks can be excluded', async () => {
      let run = await create();
      for (const [now, ...deliveries] of [
        [T0 + 30, delivery('dlv_1', 'a')],
        [T0 + 10, delivery('dlv_3', 'a'), delivery('dlv_2', 'b')],
        [T0 + 20, delivery('dlv_4', 'c')],
      ] as const)
        run = await commit(run, { now, deliveries });
      const next = async (now: number, except?: string[]) =>
        (await store.nextDelivery(now, except))?.delivery_id ?? null;
      expect([await next(T0 + 9), await next(T0 + 10), await next(T0 + 40)]).toEqual([null, 'dlv_2', 'dlv_2']);
      expect([
        await next(T0 + 40, ['b']),
        await next(T0 + 40, ['a', 'b']),
        await next(T0 + 19, ['a', 'b']),
        await next(T0 + 40, ['a', 'b', 'c']),
      ]).toEqual(['dlv_3', 'dlv_4', null, null]);
      expect([
        await store.nextDeliveryAt(),
        await store.nextDeliveryAt(['a', 'b']),
        await store.nextDeliveryAt(['a', 'b', 'c']),
      ]).toEqual([T0 + 10, T0 + 20, null]);
    });

    test('an arrived delivery is deleted, a failed one is due again with its error, a given-up one never', async () => {
      await commit(await create(), { deliveries: ['dlv_1', 'dlv_2', 'dlv_3'].map((id) => delivery(id)) });
      const [far, error] = [T0 + 1_000_000, 'HTTP 500'];
      expect(await store.finishDelivery('dlv_1', { type: 'delivered' })).toBe(true);
      expect(await store.finishDelivery('dlv_2', { type: 'retry', at: T0 + 6000, error })).toBe(true);
      expect(await store.finishDelivery('dlv_3', { type: 'given_up', at: T0 + 5500, error })).toBe(true);
      expect([
        await store.nextDelivery(T0 + 5999),
        await store.nextDeliveryAt(),
        await store.countDeliveries(),
      ]).toEqual([null, T0 + 6000, { pending: 1, given_up: 1 }]);
      expect(await store.nextDelivery(T0 + 6000)).toMatchObject({
        delivery_id: 'dlv_2',
        tries: 1,
        next_at: T0 + 6000,
        error,
        created_at: T0 + 5000,
      } satisfies Partial<Delivery>);
      await store.finishDelivery('dlv_2', { type: 'retry', at: T0 + 7000, error: 'refused' });
      expect(await store.nextDelivery(far)).toMatchObject({ tries: 2, error: 'refused' });
      for (const id of ['dlv_1', 'dlv_3', 'dlv_none'])
        expect(await store.finishDelivery(id, { type: 'retry', at: T0, error })).toBe(false);
      expect(await store.finishDelivery('dlv_3', { type: 'delivered' })).toBe(false);
      expect(await store.countDeliveries()).toEqual({ pending: 1, given_up: 1 });
    });

    test('deleting a run keeps pending deliveries and removes given-up ones, which also expire with time', async () => {
      const ended = { set: { status: 'succeeded' } } as const;
      await commit(await create(1), { ...ended, deliveries: [delivery('dlv_1'), delivery('dlv_2')] });
      await commit(await create(2), { ...ended, deliveries: [delivery('dlv_3'), delivery('dlv_4')] });
      for (const id of ['dlv_2', 'dlv_3'])
        await store.finishDelivery(id, { type: 'given_up', at: T0 + 6000, error: 'x' });
      expect(await store.countDeliveries()).toEqual({ pending: 2, given_up: 2 });
      expect(await store.deleteRun('run_0001')).toBe('deleted');
      expect([await store.countDeliveries(), (await store.nextDelivery(T0 + 9000))?.delivery_id]).toEqual([
        { pending: 2, given_up: 1 },
        'dlv_1',
      ]);
      await store.finishDelivery('dlv_4', { type: 'given_up', at: T0 + 6001 + GIVEN_UP_KEPT_MS, error: 'x' });
      expect(await store.countDeliveries()).toEqual({ pending: 1, given_up: 1 });
    });

    test('a short run or question is summarised as it is, a long one is cut and says so', async () => {
      const long = '漢'.repeat(40_000);
      const [short, large] = [
        await create(1),
        await create(2, {
          spec: {
            ...newRun(2).spec,
            prompt: long,
            output_schema: { type: 'object', title: long },
            labels: { a: 'x'.repeat(3000), b: 'y'.repeat(3000), c: 'z' },
          },
        }),
      ];
      expect(await store.summaries.loadRun(short.run_id)).toEqual({ ...short, truncated: [] });
      const summary = await store.summaries.loadRun(large.run_id);
      expect(summary).toMatchObject({
        run_id: large.run_id,
        spec: { engine: 'codex', cwd: '/work', prompt: long.slice(0, 1000) },
        truncated: ['prompt', 'labels'],
        heads: large.heads,
      });
      expect(Object.keys(summary?.spec.labels ?? {})).toEqual(['a']);
      expect((await store.loadRun(large.run_id))?.spec.prompt).toBe(long);
      await commit(short, {
        set: { status: 'failed', error: { code: 'INTERNAL', message: long, details: { long } }, result: { long } },
      });
      expect(await store.summaries.loadRun(short.run_id)).toMatchObject({
        error: { code: 'INTERNAL', message: long.slice(0, 1000) },
        result: null,
        truncated: ['error', 'result'],
      });
      await commit(large, {
        set: { status: 'waiting_user' },
        ask: ask('int_1', {
          question: { kind: 'approval', prompt: long, options: [{ label: 'x', value: long }], action: { long } },
        }),
      });
      const question = {
        interaction_id: 'int_1',
        question: { kind: 'approval', prompt: long.slice(0, 1000), options: [] },
        truncated: ['question'],
      };
      for (const record of [
        await store.summaries.loadPendingInteraction(large.run_id),
        await store.summaries.loadInteraction('int_1'),
        (await store.summaries.listPending({ limit: 9 }))[0],
      ])
        expect(record).toMatchObject(question);
      expect(JSON.stringify(await store.summaries.listRuns({ limit: 9 })).length).toBeLessThan(20_000);
    });

    test('summaries are listed in the same order, by the same filters and pages as runs', async () => {
      for (const number of [1, 2, 3, 4])
        await create(number, {
          spec: {
            ...newRun(number).spec,
            prompt: number % 2 ? 'x'.repeat(30_000) : 'y',
            engine: number < 3 ? 'codex' : 'gemini',
          },
        });
      for (const filter of [
        { limit: 9 },
        { limit: 2 },
        { limit: 9, before: 'run_0003' },
        { limit: 9, engine: 'gemini' },
        { limit: 9, label: { key: 'n', value: '0002' } },
        { limit: 9, status: 'failed' as const },
      ]) {
        expect((await store.summaries.listRuns(filter)).map(({ run_id: id }) => id)).toEqual(
          (await store.listRuns(filter)).map(({ run_id: id }) => id),
        );
      }
      expect(await store.summaries.loadRun('run_none')).toBeNull();
      expect(await store.summaries.loadPendingInteraction('run_0001')).toBeNull();
    });

    test('summaries of several runs are those of each, and unknown runs are left out', async () => {
      const ids = Array.from({ length: 60 }, (_, index) => `run_${String(index + 1).padStart(4, '0')}`);
      for (const number of ids.keys())
        await create(number + 1, {
          spec: { ...newRun(number + 1).spec, prompt: number % 20 === 0 ? 'x'.repeat(30_000) : 'y' },
        });
      const ticks = countTicks();
      const summaries = await store.summaries.loadRuns([...ids, 'run_none']);
      ticks.stop();
      expect(summaries.size).toBe(ids.length);
      for (const id of ids) expect(summaries.get(id)).toEqual(await store.summaries.loadRun(id));
      // 25 are read before other work runs.
      expect(ticks.at).toBeGreaterThanOrEqual(2);
      expect(await store.summaries.loadRuns([])).toEqual(new Map());
    });

    test('a summary of a large run is the same when it is read again', async () => {
      const run = await create(1, { spec: { ...newRun(1).spec, prompt: 'é'.repeat(100_000) } });
      const first = await store.summaries.loadRun(run.run_id);
      expect(await store.summaries.loadRun(run.run_id)).toEqual(first);
      const after = await commit(run, { set: { status: 'running' } });
      expect(await store.summaries.loadRun(run.run_id)).toMatchObject({
        status: 'running',
        updated_at: after.updated_at,
        spec: first?.spec,
      });
    });

    test('a read of the journal ends early where events are large, with at least one', async () => {
      const run = await create(1);
      await commit(run, { journal: flush(3, 8, 3, T0 + 100) });
      const all = await store.readJournal(run.run_id, 'rasp', { limit: 100 });
      expect(await store.readJournal(run.run_id, 'rasp', { limit: 100, maxChars: 1 })).toEqual(all.slice(0, 1));
      expect(
        await store.readJournal(run.run_id, 'rasp', { limit: 100, fromSeq: 4, maxChars: (all[3]?.length ?? 0) + 1 }),
      ).toEqual(all.slice(3, 5));
    });

    test('a change may create another run: both or none, once per request id, not if cancel is pending', async () => {
      const notices: string[] = [];
      store.onCommitted(({ run_id: id, status }) => notices.push(`${id} ${status}`));
      const run = await create(1);
      expect(
        await store.append(change(run, { expect: { status: 'running', epoch: 0, rasp_seq: 2 }, create: newRun(2) })),
      ).toEqual({ committed: false, reason: 'status' });
      expect(await store.loadRun('run_0002')).toBeNull();
      expect(await store.append(change(run, { set: { status: 'failed' }, create: newRun(2) }))).toEqual({
        committed: true,
        heads: run.heads,
      });
      expect(await store.loadRun('run_0002')).toMatchObject({ status: 'queued', request_id: 'req_0002' });
      expect(notices).toEqual(['run_0001 queued', 'run_0001 failed', 'run_0002 queued']);
      await commit(await create(3), { set: { status: 'failed' }, create: newRun(4, { request_id: 'req_0002' }) });
      expect(await store.loadRun('run_0004')).toBeNull();
      await commit(await commit(await create(5), { set: { cancel_requested: { at: T0, actor: null } } }), {
        set: { status: 'failed' },
        create: newRun(6),
      });
      expect(await store.loadRun('run_0006')).toBeNull();
    });
  });
}
