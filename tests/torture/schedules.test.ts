// Random schedules of several runs in simulated time, seeded: created, answered, answered again, too late or
// concurrently, canceled, decided after a timeout, with a crash at any call of the store and a restart, which may crash
// as well. Clients repeat requests without a response. The result is compared with the responses, with the records of
// the engines, and with the required result of each turn. tests/slow/model.test.ts does the same with the stand-ins of
// all engines and an exact model, without crashes inside calls. PARLEY_SCHEDULES: number of schedules.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { verifyRun } from '../../src/audit/verify-run.js';
import { RequestError } from '../../src/run/request-error.js';
import { isTerminal } from '../../src/run/statechart.js';
import type { RunRecord } from '../../src/store/store.js';
import { twice } from '../support/engine-trace.js';
import { Dead, MortalOrchestrator, SESSION, SLOTS, type Play } from '../support/mortal-orchestrator.js';
import { createRoot } from '../support/orchestrated.js';
import { SimulatedTime } from '../support/simulated-timers.js';
import { chance, Figures, SEED, type Chance } from '../support/torture.js';

const SCHEDULES = Number(process.env['PARLEY_SCHEDULES'] ?? 12);
// The first schedule, to repeat one that failed.
const FROM = Number(process.env['PARLEY_SCHEDULE_FROM'] ?? 0);
const STEPS = 9;
const TIMEOUT_SEC = 600;
const MAX_ATTEMPT = 5;

type Word = 'ask' | 'done' | 'fail' | 'hang';
const LINES: Readonly<Record<Word, readonly object[]>> = {
  ask: [
    { type: 'message', id: 'm', text: 'Hm.' },
    { type: 'ask', id: 'q', prompt: 'Which?', options: ['A', 'B'] },
    { type: 'end' },
  ],
  done: [{ type: 'message', id: 'm', text: '{"done":true,"result":{"n":1}}' }, { type: 'end' }],
  fail: [{ type: 'failed', message: 'no' }],
  hang: [{ type: 'message', id: 'm', text: 'Wait.' }],
};
// The possible ends of a turn with this word, if nothing else ends it: a state, or the code of a failure.
const ENDS: Readonly<Record<Word, readonly string[]>> = {
  ask: ['waiting_user', 'INTERACTIVE_MAX_ATTEMPT_EXCEEDED'],
  done: ['succeeded'],
  fail: ['ENGINE_TURN_FAILED'],
  hang: ['running', 'TURN_TIMEOUT', 'ENGINE_IDLE_TIMEOUT'],
};

const figures = new Figures('schedules');
afterAll(() => figures.tell());

const wordOf = ({ spec, attempt_number: attempt }: RunRecord): Word =>
  (spec.prompt.split(' ')[attempt - 1] ?? 'done') as Word;

function playOf(run: RunRecord): Play {
  const word = wordOf(run);
  const lines = [{ type: 'session', session_id: SESSION }, ...LINES[word]];
  return {
    print: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
    code: word === 'fail' ? 1 : word === 'hang' ? 'hang' : 0,
  };
}

interface Sent {
  readonly runId: string;
  readonly interaction_id: string;
  readonly response: string;
  readonly idempotency_key: string;
}

class Schedule {
  readonly #time = new SimulatedTime();
  readonly #by: Chance;
  readonly #parley: MortalOrchestrator;
  readonly #ids: string[] = [];
  readonly #strict = new Set<string>();
  // The responses to the client: accepted answers, canceled runs, and those that a crash may have interrupted.
  readonly #taken: Sent[] = [];
  readonly #canceled = new Set<string>();
  readonly #interrupted = new Set<string>();
  // How far each run was verified.
  readonly #verified = new Map<string, number>();
  #requests = 0;

  constructor(number: number) {
    this.#by = chance(number);
    this.#parley = new MortalOrchestrator(createRoot(), this.#time, playOf);
  }

  async live(): Promise<void> {
    await this.#insist(
      () => Promise.resolve(),
      () => this.#parley.open(),
    );
    for (let run = 0; run < 2; run += 1) await this.#create();
    for (let step = 0; step < STEPS; step += 1) {
      if (this.#by.below(3) === 0)
        this.#parley.arm({ calls: 1 + this.#by.below(25), moment: this.#by.pick(['before', 'after']) });
      await this.#by.pick(this.#steps)();
      await this.#rest();
      await this.#check();
    }
    this.#parley.arm(null);
    await this.#parley.close();
    rmSync(this.#parley.root, { recursive: true, force: true });
  }

  readonly #steps = [
    () => this.#create(),
    () => this.#reply(),
    () => this.#reply(),
    () => this.#replyAtOnce(),
    () => this.#replyAgain(),
    () => this.#cancel(),
    async () => this.#time.advance(this.#by.pick([100, 400, 700]) * 1000),
    () => this.#restart(),
  ];

  // Repeated until there is a response, with a start after every crash.
  async #insist<T>(ask: () => Promise<T>, start: () => Promise<unknown> = async () => {}): Promise<T> {
    for (;;) {
      try {
        await start();
        return await ask();
      } catch (error) {
        if (!(error instanceof Dead)) throw error;
        await this.#revive();
      }
    }
  }

  async #revive(): Promise<void> {
    for (;;) {
      figures.add('crashes');
      // A request at the time of the crash is still written.
      await new Promise((resolve) => setImmediate(resolve));
      for (const { run_id: id } of await this.#runs('running')) this.#interrupted.add(id);
      await this.#parley.bury(this.#ids);
      if (this.#by.below(4) === 0)
        this.#parley.arm({ calls: 1 + this.#by.below(12), moment: this.#by.pick(['before', 'after']) });
      try {
        await this.#parley.open();
        return;
      } catch (error) {
        if (!(error instanceof Dead)) throw error;
      }
    }
  }

  async #runs(status: RunRecord['status']): Promise<RunRecord[]> {
    return this.#parley.store.listRuns({ status, limit: 100 });
  }

  async #create(): Promise<void> {
    const script = Array.from({ length: 1 + this.#by.below(4) }, () =>
      this.#by.pick(['ask', 'ask', 'ask', 'done', 'fail', 'hang']),
    ).join(' ');
    const strict = this.#by.below(2) === 0;
    const request = {
      engine: 'rehearsal',
      prompt: script,
      execution_mode: 'interactive',
      request_id: `request-${(this.#requests += 1)}`,
      runtime_options: {
        session_timeout_sec: TIMEOUT_SEC,
        interactive_require_user_reply: strict,
        max_attempt: MAX_ATTEMPT,
      },
    } as const;
    const { run_id: id } = await this.#insist(() => this.#parley.alive((orchestrator) => orchestrator.create(request)));
    this.#ids.push(id);
    if (strict) this.#strict.add(id);
    figures.add('runs');
  }

  async #waiting(): Promise<Sent | null> {
    const waiting = await this.#runs('waiting_user');
    if (waiting.length === 0) return null;
    const { run_id: runId } = this.#by.pick(waiting);
    const pending = await this.#parley.store.loadPendingInteraction(runId);
    const id = pending?.interaction_id ?? '';
    return { runId, interaction_id: id, response: `answer to ${id}`, idempotency_key: `key ${id}` };
  }

  // True: accepted. A refusal as too late is allowed; any other error fails the test.
  async #send({ runId, ...reply }: Sent): Promise<boolean> {
    try {
      await this.#insist(() => this.#parley.alive((orchestrator) => orchestrator.reply(runId, reply)));
      return true;
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      expect(['RUN_NOT_WAITING', 'INTERACTION_STALE', 'REPLY_CONFLICT'], error.message).toContain(error.code);
      figures.add('answers refused');
      return false;
    }
  }

  #take(sent: Sent): void {
    this.#taken.push(sent);
    figures.add('answers accepted');
  }

  async #reply(): Promise<void> {
    const sent = await this.#waiting();
    if (sent && (await this.#send(sent))) this.#take(sent);
  }

  // Two people at the same time; each retries by itself after a crash.
  async #replyAtOnce(): Promise<void> {
    const first = await this.#waiting();
    if (!first) return;
    this.#parley.arm(null);
    const second = { ...first, response: 'another', idempotency_key: 'another key' };
    const taken = await Promise.all([this.#send(first), this.#send(second)]);
    expect(taken.filter(Boolean), 'of two answers one is taken').toHaveLength(1);
    this.#take(taken[0] ? first : second);
  }

  async #replyAgain(): Promise<void> {
    const [sent] = this.#taken.length === 0 ? [] : [this.#by.pick(this.#taken)];
    if (!sent) return;
    // The identical request is repeated; another one with its key is a conflict; another one with another key is too
    // late.
    expect(await this.#send(sent)).toBe(true);
    expect(await this.#send({ ...sent, response: 'changed' })).toBe(false);
    expect(await this.#send({ ...sent, response: 'changed', idempotency_key: 'changed' })).toBe(false);
    figures.add('answers repeated', 3);
  }

  async #cancel(): Promise<void> {
    const id = this.#by.pick(this.#ids);
    try {
      const { status } = await this.#insist(() => this.#parley.alive((orchestrator) => orchestrator.cancel(id)));
      expect(status).toBe('canceled');
      this.#canceled.add(id);
      figures.add('cancels');
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      expect(error.code).toBe('RUN_ENDED');
    }
  }

  async #restart(): Promise<void> {
    await this.#insist(async () => {
      // A run that is queued now may have started when the end comes.
      for (const { run_id: id } of [...(await this.#runs('queued')), ...(await this.#runs('running'))])
        this.#interrupted.add(id);
      await this.#parley.close();
      await this.#parley.open();
    });
    figures.add('restarts');
  }

  // Until only hanging turns are in progress.
  async #rest(): Promise<void> {
    for (;;) {
      // In the order in which a run changes its state: none is missed on the way.
      const due = await this.#parley.store.nextDecision();
      const queued = await this.#runs('queued');
      const running = await this.#runs('running');
      const hanging = running.filter((run) => wordOf(run) === 'hang' && this.#isStarted(run));
      if (this.#parley.isDead) await this.#revive();
      // Hanging turns may have taken all slots.
      else if (
        running.length === hanging.length &&
        (queued.length === 0 || hanging.length >= SLOTS) &&
        (due === null || due.due_at > this.#time.now)
      )
        return;
      await new Promise((resolve) => setTimeout(resolve, 4));
    }
  }

  #isStarted({ run_id: id, attempt_number: attempt }: RunRecord): boolean {
    return this.#parley.starts().includes(`${id}/${attempt}`);
  }

  async #check(): Promise<void> {
    const { store, root, failures } = this.#parley;
    expect(twice(this.#parley.starts()), 'turns that were started twice').toEqual([]);
    expect(failures).toEqual([]);
    for (const { interaction_id: id, response, idempotency_key: key } of this.#taken)
      expect((await store.loadInteraction(id))?.resolution, `the answer to ${id}`).toMatchObject({
        response,
        idempotency_key: key,
      });
    for (const id of this.#ids) {
      const run = await store.loadRun(id);
      if (!run) return expect.fail(`${id} was created and is gone`);
      const end = run.status === 'failed' ? (run.error?.code ?? '') : run.status;
      if (this.#canceled.has(id)) expect(end).toBe('canceled');
      else if (run.status !== 'queued')
        expect(
          [
            ...ENDS[wordOf(run)],
            ...(this.#interrupted.has(id) ? ['ORCHESTRATOR_RESTART_INTERRUPTED', 'canceled'] : []),
          ],
          `${id}: ${run.spec.prompt}, attempt ${run.attempt_number}`,
        ).toContain(end);
      const questions = await store.listInteractions(id);
      if (this.#strict.has(id)) expect(questions.filter(({ state }) => state === 'auto_decided')).toEqual([]);
      for (const { state, due_at: due, resolution } of questions)
        if (state === 'auto_decided') expect(resolution?.at ?? 0).toBeGreaterThanOrEqual(due);
      if (this.#verified.get(id) === run.heads.rasp_seq || !(isTerminal(run.status) || run.status === 'waiting_user'))
        continue;
      this.#verified.set(id, run.heads.rasp_seq);
      expect(
        (await verifyRun(store, join(root, 'data'), run)).filter(({ ok }) => !ok),
        id,
      ).toEqual([]);
    }
  }
}

test(
  `${SCHEDULES} random schedules: no loss, no duplicates, each run as expected (seed ${SEED})`,
  { timeout: 60_000 + SCHEDULES * 5000 },
  async () => {
    for (let number = FROM; number < FROM + SCHEDULES; number += 1) {
      try {
        await new Schedule(number).live();
      } catch (error) {
        throw new Error(`schedule ${number} of seed ${SEED}`, { cause: error });
      }
      figures.add('schedules');
    }
  },
);
