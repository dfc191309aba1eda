// Dispatch within one process, on a real store with time moved by hand: who is started when, and that no failure stops
// it.
import { DamagedDataError } from '../../src/kernel/stored-json.js';
import { singleHost } from '../../src/ownership/single-host.js';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { EmbeddedDispatch } from '../../src/dispatch/embedded.js';
import type { RunState } from '../../src/run/statechart.js';
import { openDataDir, type DataDir } from '../../src/store/sqlite/data-dir.js';
import type { InteractionRecord, RunRecord, Store } from '../../src/store/store.js';
import { alterStore } from '../support/altered-store.js';
import { countTicks } from '../support/count-ticks.js';
import { SimulatedTimers } from '../support/simulated-timers.js';
import { Gate } from '../support/gate.js';
import { ask, change, newRun } from '../store/conformance.js';

const RETRY_MS = 1000;

let dir: string;
let data: DataDir;
let timers: SimulatedTimers;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'parley-dispatch-'));
  data = await openDataDir(dir, { pid: process.pid });
  timers = new SimulatedTimers();
});
afterEach(async () => {
  await data.close();
  rmSync(dir, { recursive: true });
});

async function setStatus(runId: string, status: RunState, rest: Parameters<typeof change>[1] = {}): Promise<void> {
  const run = (await data.store.loadRun(runId)) as RunRecord;
  expect(await data.store.append(change(run, { set: { status }, ...rest }))).toMatchObject({ committed: true });
}

async function queue(...numbers: number[]): Promise<void> {
  for (const number of numbers) await data.store.createRun(newRun(number));
}

// A question that has expired.
async function askDue(number: number): Promise<void> {
  await queue(number);
  await setStatus(`run_000${number}`, 'waiting_user', { ask: ask(`int_${number}`, { decides: true, due_at: 1 }) });
}

// Runs turns until the test ends them, and decides expired questions.
class Scene {
  readonly started: string[] = [];
  readonly decided: string[] = [];
  readonly failures: unknown[] = [];
  readonly turns = new Map<string, Gate>();
  most = 0;
  // Runs that cannot be started.
  readonly refused = new Set<string>();
  readonly dispatch: EmbeddedDispatch;

  constructor(store: Store, slots: number, decide = (_interaction: InteractionRecord) => {}) {
    this.dispatch = new EmbeddedDispatch(
      { store, ...singleHost(store), timers, clock: { now: () => 1_000_000 } },
      {
        startTurn: (run) => this.#play(run.run_id),
        decide: async (interaction) => {
          decide(interaction);
          const resolution = { at: 1, response: null, actor: null, idempotency_key: null, finish: false };
          await setStatus(interaction.run_id, 'failed', {
            resolve: { interaction_id: interaction.interaction_id, state: 'auto_decided', resolution },
          });
          this.decided.push(interaction.interaction_id);
          return true;
        },
        onFailure: (error) => this.failures.push(error),
      },
      { slots },
    );
  }

  async #play(runId: string): Promise<void> {
    this.started.push(runId);
    if (this.refused.has(runId)) throw new Error('it could not be stored');
    const turn = new Gate();
    this.turns.set(runId, turn);
    this.most = Math.max(this.most, this.turns.size);
    await turn.opened;
    await setStatus(runId, 'succeeded');
    this.turns.delete(runId);
  }

  async look(): Promise<void> {
    this.dispatch.wake();
    await this.dispatch.idle();
  }

  // Its turn has ended, and its effects have been processed.
  async end(runId: string): Promise<void> {
    this.turns.get(runId)?.open();
    while (this.turns.has(runId)) await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    await this.dispatch.idle();
  }

  async close(): Promise<void> {
    const closed = this.dispatch.close();
    for (const turn of this.turns.values()) turn.open();
    await closed;
  }
}

test.each([
  ['nextDecision', 2],
  ['listQueued', 1],
  ['loadRun', 1],
  ['decide', 1],
] as const)(
  'a poll in which %s fails does the rest, and the next poll covers everything again',
  async (name, failures) => {
    await queue(1);
    await askDue(2);
    let broken = true;
    const fail = () => {
      if (broken) throw new Error(`${name} is broken`);
    };
    const store =
      name === 'decide'
        ? data.store
        : alterStore(data.store, {
            [name]: async (...args: never[]) => {
              fail();
              return (data.store[name] as (...parameters: never[]) => unknown)(...args);
            },
          });
    const scene = new Scene(store, 1, name === 'decide' ? fail : undefined);
    await scene.look();
    const decides = name === 'nextDecision' || name === 'decide';
    expect([scene.decided, scene.started]).toEqual(decides ? [[], ['run_0001']] : [['int_2'], []]);
    expect(scene.failures).toHaveLength(failures);
    expect(timers.lengths()).toEqual([RETRY_MS]);
    broken = false;
    timers.advance(RETRY_MS);
    await scene.dispatch.idle();
    expect([scene.decided, scene.started]).toEqual([['int_2'], ['run_0001']]);
    expect(scene.failures).toHaveLength(failures);
    await scene.close();
  },
);

test('never more turns run at once than there are slots, and the oldest run is next', async () => {
  await queue(1, 2, 3, 4, 5);
  const scene = new Scene(data.store, 2);
  await scene.look();
  await scene.look();
  expect(scene.started).toEqual(['run_0001', 'run_0002']);
  for (const runId of ['run_0002', 'run_0001', 'run_0003']) await scene.end(runId);
  expect(scene.started).toEqual(['run_0001', 'run_0002', 'run_0003', 'run_0004', 'run_0005']);
  expect(scene.most).toBe(2);
  await scene.close();
});

test('a run that could not be started rests for a while and does not hide the runs behind it', async () => {
  await queue(1, 2);
  const scene = new Scene(data.store, 1);
  scene.refused.add('run_0001');
  await scene.look();
  await scene.end('run_0001');
  expect(scene.started).toEqual(['run_0001', 'run_0002']);
  await scene.end('run_0002');
  expect(scene.started).toEqual(['run_0001', 'run_0002']);
  scene.refused.clear();
  timers.advance(RETRY_MS);
  await scene.dispatch.idle();
  expect(scene.started).toEqual(['run_0001', 'run_0002', 'run_0001']);
  await scene.close();
});

test('questions that cannot be decided rest for a while and do not delay the questions behind them', async () => {
  for (const number of [1, 2, 3, 4]) await askDue(number);
  const broken = new Map<string, Error>([
    ['int_1', new DamagedDataError('spec_json is no JSON')],
    ['int_2', new Error('it could not be stored')],
  ]);
  const scene = new Scene(data.store, 1, ({ interaction_id: id }) => {
    const error = broken.get(id);
    if (error) throw error;
  });
  await scene.look();
  expect(scene.decided).toEqual(['int_3', 'int_4']);
  expect(scene.failures).toEqual([...broken.values()]);
  // A damaged run is tried again much later.
  expect(timers.lengths().toSorted((a, b) => a - b)).toEqual([RETRY_MS, 3_600_000]);
  broken.clear();
  timers.advance(RETRY_MS);
  await scene.dispatch.idle();
  expect(scene.decided).toEqual(['int_3', 'int_4', 'int_2']);
  timers.advance(3_600_000);
  await scene.dispatch.idle();
  expect(scene.decided).toEqual(['int_3', 'int_4', 'int_2', 'int_1']);
  await scene.close();
});

test.each(['nextDecision', 'listQueued', 'loadRun'] as const)(
  'nothing is started or decided any more when it is closed while %s is under way',
  async (name) => {
    await queue(1);
    await askDue(2);
    const asked = new Gate();
    const gate = new Gate();
    const scene = new Scene(
      alterStore(data.store, {
        [name]: async (...args: never[]) => {
          asked.open();
          await gate.opened;
          return (data.store[name] as (...parameters: never[]) => unknown)(...args);
        },
      }),
      1,
    );
    scene.dispatch.wake();
    await asked.opened;
    const closed = scene.dispatch.close();
    gate.open();
    await closed;
    expect(scene.started).toEqual([]);
    expect(scene.decided).toEqual(name === 'nextDecision' ? [] : ['int_2']);
    expect(timers.lengths()).toEqual([]);
  },
);

test('no timer is set any more when it is closed while the next deadline is looked for', async () => {
  await queue(1);
  await setStatus('run_0001', 'waiting_user', { ask: ask('int_1', { decides: true, due_at: 2_000_000 }) });
  const asked = new Gate();
  const gate = new Gate();
  let looks = 0;
  const scene = new Scene(
    alterStore(data.store, {
      nextDecision: async () => {
        looks += 1;
        if (looks === 2) asked.open();
        if (looks === 2) await gate.opened;
        return data.store.nextDecision();
      },
    }),
    1,
  );
  scene.dispatch.wake();
  await asked.opened;
  const closed = scene.dispatch.close();
  gate.open();
  await closed;
  expect(timers.lengths()).toEqual([]);
});

test('a decision is made soon after its time although the clock was an hour back for a while', async () => {
  const HOUR = 3_600_000;
  let now = 10 * HOUR;
  await queue(1);
  await setStatus('run_0001', 'waiting_user', { ask: ask('int_1', { decides: true, due_at: now + 4000 }) });
  const decided: string[] = [];
  const dispatch = new EmbeddedDispatch(
    { store: data.store, ...singleHost(data.store), timers, clock: { now: () => now } },
    {
      startTurn: async () => {},
      decide: async ({ interaction_id: id }) => {
        decided.push(id);
        await setStatus('run_0001', 'failed', {
          resolve: {
            interaction_id: id,
            state: 'auto_decided',
            resolution: { at: now, response: null, actor: null, idempotency_key: null, finish: false },
          },
        });
        return true;
      },
      onFailure: (error) => {
        throw error;
      },
    },
    { slots: 1 },
  );
  now -= HOUR;
  dispatch.wake();
  await dispatch.idle();
  timers.advance(6000);
  await dispatch.idle();
  expect(decided).toEqual([]);
  now += HOUR + 6000;
  timers.advance(5000);
  await dispatch.idle();
  expect(decided).toEqual(['int_1']);
  await dispatch.close();
  expect(timers.lengths()).toEqual([]);
});

// Questions without end that expired, none of which can be decided.
function refuseAll(): { readonly dispatch: EmbeddedDispatch; readonly resting: number[] } {
  const resting: number[] = [];
  const nextDecision = async (except: readonly string[] = []): Promise<InteractionRecord> => {
    resting.push(except.length);
    return { interaction_id: `int_${except.length}`, due_at: 1 } as InteractionRecord;
  };
  const store = alterStore(data.store, { nextDecision });
  const dispatch = new EmbeddedDispatch(
    { store, ...singleHost(store), timers, clock: { now: () => 1_000_000 } },
    { startTurn: async () => {}, decide: async () => false, onFailure: () => {} },
    { slots: 1 },
  );
  return { dispatch, resting };
}

test('the calls of one event-loop tick start one pass and at most one more', async () => {
  const { dispatch, resting } = refuseAll();
  for (let call = 0; call < 100; call += 1) {
    dispatch.wake();
    for (let microtask = 0; microtask < 50; microtask += 1) await Promise.resolve();
  }
  // The first pass has begun at once, and waits for a tick after its first question.
  expect(resting).toHaveLength(1);
  await dispatch.idle();
  // Two passes tried a hundred each, and their last read sets the alarm.
  expect(resting).toHaveLength(202);
  await dispatch.close();
});

test('other work runs between questions that cannot be decided, and at most a thousand rest', async () => {
  const { dispatch, resting } = refuseAll();
  const ticks = countTicks();
  for (let pass = 0; pass < 15; pass += 1) {
    dispatch.wake();
    await dispatch.idle();
  }
  ticks.stop();
  expect(Math.max(...resting)).toBe(1000);
  expect(ticks.at).toBeGreaterThanOrEqual(1000);
  timers.advance(RETRY_MS);
  await dispatch.idle();
  expect(resting.at(-1)).toBe(100);
  await dispatch.close();
});
