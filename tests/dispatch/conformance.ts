// The contract of every dispatch, in real time: turns up to its slots, oldest first; expired questions decided; nothing
// started after close.
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Dispatch, DispatchHandlers } from '../../src/dispatch/dispatch.js';
import { DamagedDataError } from '../../src/kernel/stored-json.js';
import type { RunState } from '../../src/run/statechart.js';
import type { RunRecord, Store } from '../../src/store/store.js';
import { ask, change, newRun } from '../store/conformance.js';
import { Gate } from '../support/gate.js';

export interface DispatchUnderTest {
  readonly store: Store;
  create(handlers: DispatchHandlers, slots: number): Dispatch;
  cleanup(): Promise<void>;
}

export const eventually = (look: () => unknown) => expect.poll(look, { timeout: 20_000, interval: 20 });

// Plays turns until the test ends them, and decides what is due.
export class Stage {
  readonly started: string[] = [];
  readonly decided: string[] = [];
  readonly failures: unknown[] = [];
  readonly turns = new Map<string, Gate>();
  most = 0;
  // Runs that cannot be started.
  readonly refused = new Set<string>();
  // Questions of damaged runs.
  readonly undecidable = new Set<string>();
  readonly #store: Store;
  readonly dispatch: Dispatch;

  constructor({ store, create }: Pick<DispatchUnderTest, 'store' | 'create'>, slots: number) {
    this.#store = store;
    this.dispatch = create(
      {
        startTurn: (run) => this.#play(run.run_id),
        decide: async ({ run_id: runId, interaction_id: id }) => {
          if (this.undecidable.has(id)) throw new DamagedDataError(`spec_json of run ${runId} is no JSON`);
          const isDone = await this.set(runId, 'failed', {
            resolve: {
              interaction_id: id,
              state: 'auto_decided',
              resolution: { at: 1, response: null, actor: null, idempotency_key: null, finish: false },
            },
          });
          if (isDone) this.decided.push(id);
          return isDone;
        },
        onFailure: (error) => this.failures.push(error),
      },
      slots,
    );
  }

  async set(runId: string, status: RunState, rest: Parameters<typeof change>[1] = {}): Promise<boolean> {
    const run = (await this.#store.loadRun(runId)) as RunRecord;
    return (
      await this.#store.append(
        change(run, { set: { status, ...(status === 'running' ? { epoch: run.epoch + 1 } : {}) }, ...rest }),
      )
    ).committed;
  }

  async #play(runId: string): Promise<void> {
    if (this.refused.has(runId)) throw new Error('it could not be stored');
    // Of several who want to begin it one may.
    if (!(await this.set(runId, 'running'))) return;
    this.started.push(runId);
    const turn = new Gate();
    this.turns.set(runId, turn);
    this.most = Math.max(this.most, this.turns.size);
    await turn.opened;
    await this.set(runId, 'succeeded');
    this.turns.delete(runId);
  }

  async queue(...numbers: number[]): Promise<void> {
    for (const number of numbers) await this.#store.createRun(newRun(number));
  }

  // A question whose time is over so many milliseconds from now.
  async ask(number: number, inMs: number): Promise<void> {
    await this.queue(number);
    await this.set(`run_000${number}`, 'waiting_user', {
      ask: ask(`int_${number}`, { decides: true, due_at: Date.now() + inMs }),
    });
  }

  end(runId: string): void {
    this.turns.get(runId)?.open();
  }

  async close(): Promise<void> {
    const closed = this.dispatch.close();
    for (const turn of this.turns.values()) turn.open();
    await closed;
  }
}

export function describeDispatch(name: string, open: () => Promise<DispatchUnderTest>): void {
  async function withStage(slots: number): Promise<Stage> {
    const opened = await open();
    const stage = new Stage(opened, slots);
    onTestFinished(async () => {
      await stage.close();
      await opened.cleanup();
      expect(stage.failures).toEqual([]);
    });
    return stage;
  }

  describe(`dispatch, ${name}`, () => {
    test('nothing begins before the first word', async () => {
      const stage = await withStage(2);
      await stage.queue(1);
      await stage.dispatch.idle();
      expect(stage.started).toEqual([]);
      stage.dispatch.wake();
      await eventually(() => stage.started).toEqual(['run_0001']);
    });

    test('never more turns run at once than there are slots, and the oldest run is next', async () => {
      const stage = await withStage(2);
      await stage.queue(1, 2, 3, 4, 5);
      stage.dispatch.wake();
      await eventually(() => stage.turns.size).toBe(2);
      expect(stage.started.toSorted()).toEqual(['run_0001', 'run_0002']);
      for (const [ended, next] of [
        ['run_0002', 'run_0003'],
        ['run_0001', 'run_0004'],
        ['run_0003', 'run_0005'],
      ] as const) {
        stage.end(ended);
        await eventually(() => stage.started.at(-1)).toBe(next);
      }
      expect(stage.most).toBe(2);
    });

    test('a changed number of slots applies to the next turns; running turns continue', async () => {
      const stage = await withStage(1);
      await stage.queue(1, 2, 3, 4);
      stage.dispatch.wake();
      await eventually(() => stage.started).toEqual(['run_0001']);
      stage.dispatch.setSlots(3);
      stage.dispatch.wake();
      await eventually(() => stage.turns.size).toBe(3);
      stage.dispatch.setSlots(1);
      stage.end('run_0001');
      stage.end('run_0002');
      await eventually(() => stage.turns.size).toBe(1);
      await stage.dispatch.idle();
      expect(stage.started).toHaveLength(3);
      stage.end('run_0003');
      await eventually(() => stage.started.at(-1)).toBe('run_0004');
    });

    test('a run that could not be started rests for a while and does not hide the runs behind it', async () => {
      const stage = await withStage(1);
      await stage.queue(1, 2);
      stage.refused.add('run_0001');
      stage.dispatch.wake();
      await eventually(() => stage.started).toEqual(['run_0002']);
      stage.refused.clear();
      stage.end('run_0002');
      await eventually(() => stage.started).toEqual(['run_0002', 'run_0001']);
    });

    test('an overdue question is decided once, even if overdue before the start; an answered one is not', async () => {
      const stage = await withStage(1);
      await stage.ask(1, -60_000);
      await stage.ask(2, 300);
      await stage.ask(3, 600);
      await stage.set('run_0003', 'canceled', {
        resolve: {
          interaction_id: 'int_3',
          state: 'canceled',
          resolution: { at: 1, response: null, actor: null, idempotency_key: null, finish: false },
        },
      });
      stage.dispatch.wake();
      await eventually(() => stage.decided.toSorted()).toEqual(['int_1', 'int_2']);
      await stage.ask(4, 300);
      stage.dispatch.wake();
      await eventually(() => stage.decided.toSorted()).toEqual(['int_1', 'int_2', 'int_4']);
    });

    test('a question that cannot be decided does not delay the questions behind it', async () => {
      const stage = await withStage(1);
      stage.undecidable.add('int_1');
      await stage.ask(1, -60_000);
      await stage.ask(2, -30_000);
      stage.dispatch.wake();
      await eventually(() => stage.decided).toEqual(['int_2']);
      expect(stage.failures.splice(0).length).toBeGreaterThan(0);
    });

    test('nothing starts after close, and close waits for running work', async () => {
      const stage = await withStage(1);
      await stage.queue(1, 2);
      stage.dispatch.wake();
      await eventually(() => stage.turns.size).toBe(1);
      let isClosed = false;
      const closed = stage.dispatch.close().then(() => (isClosed = true));
      await new Promise((resolve) => setImmediate(resolve));
      expect(isClosed).toBe(false);
      stage.end('run_0001');
      await closed;
      stage.dispatch.wake();
      await stage.dispatch.idle();
      expect([stage.started, stage.turns.size]).toEqual([['run_0001'], 0]);
    });
  });
}
