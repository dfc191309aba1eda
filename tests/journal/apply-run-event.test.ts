// The only function that changes a run's state, on a real store: every pair of state and event, and its effects.
import { singleHost } from '../../src/ownership/single-host.js';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { FcmpEvent } from '../../src/fcmp/event.js';
import { projectConversation } from '../../src/fcmp/fold.js';
import { createCountingIds } from '../../src/kernel/ids.js';
import { applyRunEvent, type RunTransition } from '../../src/journal/apply-run-event.js';
import type { Hook } from '../../src/journal/deps.js';
import { RunJournal } from '../../src/journal/run-journal.js';
import { stateOf } from '../../src/journal/run-state.js';
import { draft, type RaspDraft } from '../../src/rasp/draft.js';
import type { RaspData, RaspEvent } from '../../src/rasp/event.js';
import { explainRasp } from '../../src/rasp/validate.js';
import { startFold } from '../../src/run/run-fold.js';
import { describeSession } from '../../src/run/session-handle.js';
import { CHART, EVENTS, STATES, type RunEvent, type RunState } from '../../src/run/statechart.js';
import { openDataDir, type DataDir } from '../../src/store/sqlite/data-dir.js';
import { FIRST_DIGEST, nextDigest } from '../../src/store/digest.js';
import { EMPTY_JOURNAL, type Delivery, type RunRecord, type Store } from '../../src/store/store.js';

const NOW = Date.parse('2026-11-15T12:00:00.000Z');
const QUESTION: RaspData['interaction.requested'] = {
  interaction_id: 'int_1',
  kind: 'open_text',
  prompt: 'Which?',
  options: [],
  asked_at: '2026-11-15T12:00:00.000Z',
};
const HANDLE = {
  engine: 'codex',
  handle_type: 'session_id',
  handle_value: '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c',
  cwd: '/work',
  home: null,
  created_at_attempt: 1,
} as const;
const ERROR = { code: 'ENGINE_EXITED', message: 'it died' } as const;
const WAITS = { pending: true, handle: true, requireUserReply: false, sticky: false };

let dir: string;
let data: DataDir;
let store: Store;
let runs = 0;
const clock = { now: () => NOW };
const ids = createCountingIds();
let hooks: readonly Hook[] = [];

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'parley-door-'));
  data = await openDataDir(dir, { pid: process.pid });
  ({ store } = data);
  hooks = [];
});
afterEach(async () => {
  await data.close();
  rmSync(dir, { recursive: true });
});

async function createRun(): Promise<RunRecord> {
  runs += 1;
  const runId = `run_${runs}`;
  const journal = new RunJournal(
    { runId, engine: 'codex', attempt: 1 },
    { heads: EMPTY_JOURNAL, state: startFold(null) },
    clock,
  );
  journal.add([draft('lifecycle.run.created', { engine: 'codex', execution_mode: 'interactive', prompt: 'go' })]);
  const flush = journal.drain()?.lines;
  if (!flush) throw new Error('nothing to store');
  const spec = {
    engine: 'codex',
    execution_mode: 'interactive',
    prompt: 'go',
    cwd: '/work',
    home: null,
    permission: 'workspace-write',
    runtime_options: {},
    labels: {},
  } as const;
  const outcome = await store.createRun({
    run_id: runId,
    request_id: runId,
    request_digest: '',
    spec,
    session_timeout_sec: 1200,
    handle: null,
    created_at: NOW,
    journal: flush,
    queue_limit: 1000,
  });
  if (!outcome.created) throw new Error(outcome.reason);
  return outcome.run;
}

// The facts that an orchestrator passes with an event, if the chart allows it.
function transition(event: RunEvent, state: RunState): RunTransition {
  const base = { event, facts: WAITS };
  switch (event) {
    case 'turn.needs_input':
      return {
        ...base,
        before: [
          draft('lifecycle.session.confirmed', { session: describeSession(HANDLE) }),
          draft('interaction.requested', QUESTION),
        ],
      };
    case 'interaction.reply.accepted':
      return {
        ...base,
        before: [
          draft('interaction.reply.accepted', {
            interaction_id: 'int_1',
            resolution_mode: 'user_reply',
            accepted_at: QUESTION.asked_at,
            response: 'x',
          }),
        ],
      };
    case 'interaction.auto_decide.timeout':
      return {
        ...base,
        before: [
          draft('interaction.auto_decide.timeout', {
            interaction_id: 'int_1',
            resolution_mode: 'auto_decide_timeout',
            policy: 'engine_judgement',
          }),
        ],
      };
    case 'turn.failed':
      return { ...base, error: ERROR };
    case 'restart.reconcile_failed':
      return {
        ...base,
        facts: { ...WAITS, handle: state !== 'waiting_user' },
        error: ERROR,
      };
    case 'run.canceled':
      return base;
    case 'turn.succeeded':
      return { ...base, result: { ok: true } };
    default:
      return base;
  }
}

async function walk(run: RunRecord, ...events: readonly RunEvent[]): Promise<RunRecord> {
  for (const event of events) {
    const applied = await applyRunEvent(
      { store, clock, ids, hooks, dataDir: '', files: singleHost(store).files },
      run,
      transition(event, run.status),
    );
    if (!applied.applied) throw new Error(`${event} was refused in ${run.status}`);
    run = applied.run;
  }
  return run;
}

test('the time of a change never lies before that of the last event, whatever the clock says', async () => {
  const run = await createRun();
  const late = { now: () => NOW - 60_000 };
  const applied = await applyRunEvent(
    { store, clock: late, ids, hooks, dataDir: '', files: singleHost(store).files },
    run,
    {
      event: 'turn.started',
      facts: WAITS,
    },
  );
  expect(applied.applied).toBe(true);
  const [line] = (await store.readJournal(run.run_id, 'rasp', { limit: 10 })).slice(-1);
  const { ts, data } = JSON.parse(line ?? '') as { ts: string; data: { updated_at: string } };
  expect([Date.parse(ts), Date.parse(data.updated_at)]).toEqual([NOW, NOW]);
});

const WAY_TO: Record<RunState, readonly RunEvent[]> = {
  queued: [],
  running: ['turn.started'],
  waiting_user: ['turn.started', 'turn.needs_input'],
  succeeded: ['turn.started', 'turn.succeeded'],
  failed: ['turn.started', 'turn.failed'],
  canceled: ['run.canceled'],
};

async function journalOf(run: RunRecord): Promise<{ rasp: RaspEvent[]; fcmp: string[] }> {
  const rasp = await store.readJournal(run.run_id, 'rasp', { limit: 1000 });
  return {
    rasp: rasp.map((line) => JSON.parse(line) as RaspEvent),
    fcmp: await store.readJournal(run.run_id, 'fcmp', { limit: 1000 }),
  };
}

test('of all 54 pairs of state and event only the 13 edges of the chart apply; the others write nothing', async () => {
  const taken: string[] = [];
  for (const state of STATES) {
    for (const event of EVENTS) {
      const run = await walk(await createRun(), ...WAY_TO[state]);
      const before = [await store.loadRun(run.run_id), await journalOf(run), await store.loadInteraction('int_1')];
      const applied = await applyRunEvent(
        { store, clock, ids, hooks, dataDir: '', files: singleHost(store).files },
        run,
        transition(event, state),
      );
      if (applied.applied) {
        taken.push(`${state} ${event} ${applied.run.status}`);
        expect(await store.loadRun(run.run_id)).toEqual(applied.run);
      } else {
        expect(applied).toMatchObject({ refusal: { code: 'ILLEGAL_TRANSITION', state, event } });
        expect([await store.loadRun(run.run_id), await journalOf(run), await store.loadInteraction('int_1')]).toEqual(
          before,
        );
      }
      // One question id is enough for all, because it belongs to its run.
      const end = (await store.loadRun(run.run_id)) as RunRecord;
      if (!['succeeded', 'failed', 'canceled'].includes(end.status)) await walk(end, 'run.canceled');
      expect(await store.deleteRun(run.run_id)).toBe('deleted');
    }
  }
  expect(taken.toSorted()).toEqual(CHART.map((edge) => `${edge.from} ${edge.on} ${edge.to}`).toSorted());
});

describe('a change through the door', () => {
  test('it stores question and handle in the transaction that enters waiting_user', async () => {
    const run = await walk(await createRun(), 'turn.started', 'turn.needs_input');
    expect(run.status).toBe('waiting_user');
    expect(await store.loadPendingInteraction(run.run_id)).toMatchObject({ interaction_id: 'int_1', state: 'pending' });
    expect(await store.loadHandle(run.request_id)).toEqual(HANDLE);
  });

  test('a guard that does not hold refuses it, and nothing is written', async () => {
    const run = await walk(await createRun(), 'turn.started');
    const applied = await applyRunEvent(
      { store, clock, ids, hooks, dataDir: '', files: singleHost(store).files },
      run,
      {
        ...transition('turn.needs_input', 'running'),
        facts: { ...WAITS, handle: false },
      },
    );
    expect(applied).toMatchObject({ applied: false, refusal: { code: 'GUARD_REFUSED', guard: 'pending_and_handle' } });
    expect(await store.loadRun(run.run_id)).toEqual(run);
    expect(await store.loadPendingInteraction(run.run_id)).toBeNull();
  });

  test('of a hundred answers at once exactly one is applied', async () => {
    const run = await walk(await createRun(), 'turn.started', 'turn.needs_input');
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, () =>
        applyRunEvent(
          { store, clock, ids, hooks, dataDir: '', files: singleHost(store).files },
          run,
          transition('interaction.reply.accepted', 'waiting_user'),
        ),
      ),
    );
    expect(outcomes.filter((outcome) => outcome.applied)).toHaveLength(1);
    expect(outcomes.filter((outcome) => 'conflict' in outcome)).toHaveLength(99);
    const { rasp } = await journalOf(run);
    expect(rasp.filter((event) => event.event.type === 'interaction.reply.accepted')).toHaveLength(1);
  });

  test('the journal has no gap, fits the contract, ends with the terminal state, and FCMP is its fold', async () => {
    const run = await walk(
      await createRun(),
      'turn.started',
      'turn.needs_input',
      'interaction.reply.accepted',
      'turn.started',
      'turn.succeeded',
    );
    const { rasp, fcmp } = await journalOf(run);
    expect(rasp.map((event) => event.seq)).toEqual(rasp.map((_, index) => index + 1));
    for (const event of rasp) expect(explainRasp(event)).toBeNull();
    expect(rasp.map((event) => event.attempt_number)).toEqual([1, 1, 1, 1, 1, 1, 1, 2, 2]);
    expect(rasp.at(-1)).toMatchObject({
      event: { type: 'lifecycle.state.changed' },
      data: { to: 'succeeded', result: { ok: true } },
    });
    expect(fcmp).toEqual(projectConversation(run.run_id, rasp));
    expect(fcmp.map((line) => (JSON.parse(line) as FcmpEvent).seq)).toEqual(fcmp.map((_, index) => index + 1));
    expect(run.heads).toMatchObject({ rasp_seq: rasp.length, fcmp_seq: fcmp.length });
  });

  test('the digest on the run is the chain over its flushes', async () => {
    const created = await createRun();
    const run = await walk(created, 'turn.started', 'turn.failed');
    const [one, two, three] = (await store.readJournal(run.run_id, 'rasp', { limit: 10 })).map((line) =>
      Buffer.from(`${line}\n`),
    );
    expect([one, two, three].reduce((head, bytes) => nextDigest(head, bytes as Buffer), FIRST_DIGEST)).toBe(
      run.heads.digest,
    );
  });
});

async function takeDeliveries(): Promise<Delivery[]> {
  const deliveries: Delivery[] = [];
  for (let next = await store.nextDelivery(NOW); next; next = await store.nextDelivery(NOW)) {
    deliveries.push(next);
    await store.finishDelivery(next.delivery_id, { type: 'delivered' });
  }
  return deliveries;
}

describe('hooks', () => {
  const ALL = { name: 'all', events: ['waiting_user', 'succeeded', 'failed', 'canceled'] } as const;

  test('each edge into waiting_user or a terminal state notifies each subscribed hook once, others none', async () => {
    for (const edge of CHART) {
      hooks = [];
      const run = await walk(await createRun(), ...WAY_TO[edge.from]);
      hooks = [ALL, { name: 'ends', events: ['failed'] }];
      const after = await walk(run, edge.on);
      const deliveries = await takeDeliveries();
      const wanted =
        edge.to === edge.from || edge.to === 'queued' || edge.to === 'running'
          ? []
          : edge.to === 'failed'
            ? ['all', 'ends']
            : ['all'];
      expect(
        deliveries.map(({ hook }) => hook),
        edge.id,
      ).toEqual(wanted);
      expect(new Set(deliveries.map(({ delivery_id: id }) => id)).size).toBe(deliveries.length);
      for (const each of deliveries)
        expect(each).toMatchObject({
          type: `run.${edge.to}`,
          run_id: run.run_id,
          rasp_seq: after.heads.rasp_seq,
          digest: after.heads.digest,
        });
      hooks = [];
      if (!['succeeded', 'failed', 'canceled'].includes(after.status)) await walk(after, 'run.canceled');
      await store.deleteRun(run.run_id);
    }
  });

  test('a notification names the run and its question, and nothing else of the conversation', async () => {
    hooks = [ALL];
    const run = await walk(await createRun(), 'turn.started', 'turn.needs_input');
    const common = {
      url: null,
      run_id: run.run_id,
      request_id: run.request_id,
      engine: 'codex',
      labels: {},
      at: '2026-11-15T12:00:00.000Z',
    };
    expect((await takeDeliveries()).map(({ payload }) => payload)).toEqual([
      {
        ...common,
        type: 'run.waiting_user',
        status: 'waiting_user',
        attempt_number: 1,
        interaction: { interaction_id: 'int_1', kind: 'open_text', prompt: 'Which?', options: [] },
        error: null,
      },
    ]);
    const again = await walk(run, 'interaction.reply.accepted', 'turn.started');
    const { details: _, ...error } = { ...ERROR, details: { stderr: 'secret words' } };
    await applyRunEvent({ store, clock, ids, hooks, dataDir: '', files: singleHost(store).files }, again, {
      event: 'turn.failed',
      facts: WAITS,
      error: { ...ERROR, details: { stderr: 'secret words' } },
    });
    expect((await takeDeliveries()).map(({ payload }) => payload)).toEqual([
      { ...common, type: 'run.failed', status: 'failed', attempt_number: 2, interaction: null, error },
    ]);
    await walk(await createRun(), 'turn.started', 'turn.succeeded');
    expect(JSON.stringify(await takeDeliveries())).not.toMatch(/"ok"|"go"/);
  });

  test('a very long question is cut', async () => {
    hooks = [ALL];
    const running = await walk(await createRun(), 'turn.started');
    const asks = transition('turn.needs_input', 'running');
    await applyRunEvent({ store, clock, ids, hooks, dataDir: '', files: singleHost(store).files }, running, {
      ...asks,
      before: [
        draft('interaction.requested', {
          ...QUESTION,
          prompt: 'x'.repeat(50_000),
          options: [{ label: 'a', value: 'a' }],
        }),
      ],
    });
    const [delivery] = await takeDeliveries();
    expect(delivery?.payload['interaction']).toEqual({
      interaction_id: 'int_1',
      kind: 'open_text',
      prompt: `${'x'.repeat(10_000)}…`,
      options: [{ label: 'a', value: 'a' }],
    });
  });

  test('a refused change notifies nobody', async () => {
    hooks = [ALL];
    const run = await walk(await createRun(), 'turn.started');
    await applyRunEvent({ store, clock, ids, hooks, dataDir: '', files: singleHost(store).files }, run, {
      ...transition('turn.needs_input', 'running'),
      facts: { ...WAITS, handle: false },
    });
    await applyRunEvent(
      { store, clock, ids, hooks, dataDir: '', files: singleHost(store).files },
      { ...run, epoch: 7 },
      transition('turn.failed', 'running'),
    );
    expect(await takeDeliveries()).toEqual([]);
  });
});

function message(text: string): RaspDraft {
  return {
    type: 'agent.message.final',
    data: { text },
    json: JSON.stringify({ text }),
    parser: 'codex_ndjson',
    confidence: 1,
    sessionId: null,
    itemId: null,
    interactionId: null,
    range: null,
  };
}

describe('a journal that is written', () => {
  test('many flushes continue where the last one ended; a state change also writes pending lines', async () => {
    const run = await walk(await createRun(), 'turn.started');
    let { heads } = run;
    const owner = { runId: run.run_id, engine: 'codex', attempt: 1 };
    const journal = new RunJournal(owner, { heads: run.heads, state: stateOf(run) }, clock);
    for (let count = 0; count < 3; count += 1) {
      journal.add([message(`a${count}`), message(`b${count}`)]);
      const drained = journal.drain();
      if (!drained) throw new Error('nothing to store');
      const expected = { epoch: run.epoch, rasp_seq: heads.rasp_seq };
      const outcome = await store.append({ run_id: run.run_id, expect: expected, now: NOW, ...drained });
      if (!outcome.committed) throw new Error(outcome.reason);
      ({ heads } = outcome);
    }
    journal.add([message('last')]);
    expect(journal.pending).toBe(1);
    const applied = await applyRunEvent(
      { store, clock, ids, hooks, dataDir: '', files: singleHost(store).files },
      { ...run, heads },
      transition('turn.succeeded', 'running'),
      journal,
    );
    expect(applied).toMatchObject({ applied: true });
    const { rasp, fcmp } = await journalOf(run);
    expect(rasp.map((event) => event.data.text).filter(Boolean)).toEqual(['a0', 'b0', 'a1', 'b1', 'a2', 'b2', 'last']);
    expect(fcmp).toEqual(projectConversation(run.run_id, rasp));
  });

  test('nothing added is nothing to take', () => {
    const journal = new RunJournal(
      { runId: 'run_x', engine: 'codex', attempt: 1 },
      { heads: { rasp_seq: 4, fcmp_seq: 2, ts: NOW, digest: FIRST_DIGEST }, state: startFold(null) },
      clock,
    );
    journal.add([]);
    expect(journal.drain()).toBeNull();
  });

  test('its times are never earlier than the stored ones', () => {
    const journal = new RunJournal(
      { runId: 'run_x', engine: 'codex', attempt: 1 },
      { heads: { rasp_seq: 4, fcmp_seq: 2, ts: NOW + 500, digest: FIRST_DIGEST }, state: startFold(null) },
      clock,
    );
    journal.add([message('x')]);
    expect(journal.drain()?.lines).toMatchObject({
      firstTs: NOW + 500,
      lastTs: NOW + 500,
      rasp: { firstSeq: 5, lastSeq: 5 },
      fcmp: { firstSeq: 3, lastSeq: 3 },
    });
  });
});
