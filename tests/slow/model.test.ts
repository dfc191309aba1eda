// Random histories of several runs against a model of the correct state: real store, real processes, a clock moved by
// hand. After every step each run equals its model and is sound; a refused call has its code and changes nothing.
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { isObject, type Json } from '../../src/kernel/json.js';
import type { Reply } from '../../src/commands/reply.js';
import { RequestError } from '../../src/run/request-error.js';
import type { InteractionState, RunRecord } from '../../src/store/store.js';
import { createRoot, expectSound, openBench, startsIn, type Bench } from '../support/orchestrated.js';
import { SimulatedTime } from '../support/simulated-timers.js';
import { STAND_INS, type StandIn } from '../support/stand-in.js';

const RUNS = Number(process.env['PARLEY_MODEL_RUNS'] ?? 25);
const SEED = Number(process.env['PARLEY_SEED'] ?? 20261115);
const MAX_COMMANDS = 14;
// Each history starts with some runs, so that commands have a target.
const FIRST_RUNS = 3;

const SESSION_SEC = 600;
const STEP_SEC = 200;
const MAX_ATTEMPT = 4;

// --- the model ---

// The possible ends of a turn, and so the words of a script: every word but the first ends the turn.
type Word = 'answer' | 'ask' | 'done' | 'fail' | 'exit0';
const DIRECTIVES: Readonly<Record<Word, string>> = {
  answer: '[[answer Fine.]]',
  ask: '[[ask Which?|A|B]]',
  done: '[[done {"ok":true}]]',
  fail: '[[fail]]',
  exit0: '[[exit0]]',
};

interface Asked {
  readonly id: string;
  readonly channel: 'question' | 'conversation';
  readonly dueAt: number;
  state: InteractionState;
  reply: Reply | null;
}

interface ModelRun {
  readonly id: string;
  readonly engine: StandIn;
  readonly mode: 'auto' | 'interactive';
  readonly decides: boolean;
  // The engine's script for later turns.
  script: readonly Word[];
  status: RunRecord['status'];
  code: string | null;
  attempt: number;
  // The engine processes of the run.
  starts: number;
  // The last one is pending if the run waits.
  readonly asked: Asked[];
  // The question that the current turn will wait for; its id is known when it waits.
  asking: Asked['channel'] | null;
}

interface Model {
  readonly runs: ModelRun[];
}

function end(run: ModelRun, status: 'succeeded' | 'failed' | 'canceled', code: string | null = null): void {
  Object.assign(run, { status, code });
}

function wait(run: ModelRun, channel: Asked['channel']): void {
  if (run.attempt >= MAX_ATTEMPT) return end(run, 'failed', 'INTERACTIVE_MAX_ATTEMPT_EXCEEDED');
  run.status = 'waiting_user';
  run.asking = channel;
}

// The turn that follows a start or an answer.
function playTurn(run: ModelRun): void {
  run.starts += 1;
  const at = run.script.findIndex((word) => word !== 'answer');
  const word = run.script[at];
  const spoke = at > 0;
  run.script = at < 0 ? [] : run.script.slice(at + 1);
  switch (word) {
    case 'ask':
      return run.mode === 'auto' ? end(run, 'failed', 'AUTO_MODE_CANNOT_ASK') : wait(run, 'question');
    case 'done':
      return end(run, 'succeeded');
    case 'fail':
      return end(run, 'failed', 'ENGINE_TURN_FAILED');
    case 'exit0': {
      // It names its session in its first output, so a resumed turn that stops before has confirmed nothing.
      const unconfirmed = run.attempt > 1 && run.engine === 'opencode' && !spoke;
      return end(run, 'failed', unconfirmed ? 'SESSION_RESUME_FAILED' : 'COMPLETION_UNKNOWN');
    }
    default:
      return run.mode === 'auto' ? end(run, 'succeeded') : wait(run, 'conversation');
  }
}

function pendingOf(run: ModelRun): Asked | undefined {
  return run.status === 'waiting_user' ? run.asked.at(-1) : undefined;
}

function resolve(run: ModelRun, state: InteractionState, reply: Reply | null = null): void {
  const pending = pendingOf(run);
  if (pending) Object.assign(pending, { state, reply });
}

// An answer was accepted: from a person, or from the policy.
function takeAnswer(run: ModelRun, state: InteractionState, reply: Reply | null, finish: boolean): void {
  resolve(run, state, reply);
  run.attempt += 1;
  if (finish) end(run, 'succeeded');
  else playTurn(run);
}

function refusalOf(run: ModelRun, reply: Reply): string | null {
  if (run.mode === 'auto') return 'RUN_NOT_INTERACTIVE';
  const asked = run.asked.find(({ id }) => id === reply.interaction_id);
  if (!asked) return 'INTERACTION_NOT_FOUND';
  if (asked.state === 'pending') return reply.finish && asked.channel === 'question' ? 'INVALID_ARGUMENT' : null;
  if (
    asked.state === 'answered' &&
    reply.idempotency_key !== undefined &&
    asked.reply?.idempotency_key === reply.idempotency_key
  )
    return isSame(asked.reply, reply) ? null : 'REPLY_CONFLICT';
  return run.status === 'waiting_user' ? 'INTERACTION_STALE' : 'RUN_NOT_WAITING';
}

function isSame(a: Reply, b: Reply): boolean {
  return (
    JSON.stringify([a.response ?? null, a.finish ?? false]) === JSON.stringify([b.response ?? null, b.finish ?? false])
  );
}

// --- the real system ---

class World {
  readonly root = createRoot();
  readonly time = new SimulatedTime();
  #bench: Bench | null = null;

  get bench(): Bench {
    if (!this.#bench) throw new Error('the world is closed');
    return this.#bench;
  }

  async open(): Promise<void> {
    this.#bench = await openBench(this.root, { clock: this.time.clock, timers: this.time.createTimers() });
  }

  async close(how: 'in order' | 'dropped' = 'in order'): Promise<void> {
    const { bench } = this;
    this.#bench = null;
    if (how === 'in order') return bench.close();
    await bench.data.close();
    expect(bench.failures).toEqual([]);
  }

  load(run: ModelRun): Promise<RunRecord | null> {
    return this.bench.data.store.loadRun(run.id);
  }

  // Waits until expired runs are decided, and nothing is in progress.
  async waitForRuns(model: Model, decided: readonly ModelRun[] = []): Promise<void> {
    for (const run of decided) {
      const id = run.asked.at(-1)?.id ?? '';
      while ((await this.bench.data.store.loadInteraction(id))?.state === 'pending') {
        expect(this.bench.failures).toEqual([]);
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    for (const run of model.runs) await this.bench.orchestrator.waitUntilIdle(run.id);
  }

  async check(model: Model): Promise<void> {
    for (const run of model.runs) {
      await this.#learn(run);
      const real = await expectSound(this.bench, run.id);
      expect({ status: real.status, code: real.error?.code ?? null, attempt: real.attempt_number }, run.id).toEqual({
        status: run.status,
        code: run.code,
        attempt: run.attempt,
      });
      for (const { id, state } of run.asked)
        expect((await this.bench.data.store.loadInteraction(id))?.state, id).toBe(state);
      expect((await this.bench.data.store.loadPendingInteraction(run.id))?.interaction_id, run.id).toBe(
        pendingOf(run)?.id,
      );
      expect(
        startsIn(this.root).filter(({ env }) => env['PARLEY_TURN']?.startsWith(`${run.id}/`)),
        run.id,
      ).toHaveLength(run.starts);
    }
    expect(this.bench.failures).toEqual([]);
  }

  // Ids and times of a new question are the system's to choose.
  async #learn(run: ModelRun): Promise<void> {
    const channel = run.asking;
    if (channel === null) return;
    run.asking = null;
    const pending = await this.bench.data.store.loadPendingInteraction(run.id);
    expect(pending, run.id).toMatchObject({ attempt_number: run.attempt, decides: run.decides });
    if (!pending) return;
    expect(pending.question['channel'] === 'conversation').toBe(channel === 'conversation');
    expect(pending.due_at).toBe(pending.asked_at + SESSION_SEC * 1000);
    expect(run.asked.map(({ id }) => id)).not.toContain(pending.interaction_id);
    run.asked.push({ id: pending.interaction_id, channel, dueAt: pending.due_at, state: 'pending', reply: null });
  }

  async refuses(run: ModelRun, code: string, call: () => Promise<unknown>): Promise<void> {
    const before = await this.load(run);
    await expect(call()).rejects.toSatisfy(
      (error) => error instanceof RequestError && error.code === code,
      `a refusal with ${code}`,
    );
    expect(await this.load(run)).toEqual(before);
  }
}

// --- the commands ---

type Command = fc.AsyncCommand<Model, World>;

const always = () => true;
const hasRun = ({ runs }: Readonly<Model>) => runs.length > 0;
const hasWaiting = ({ runs }: Readonly<Model>) => runs.some((run) => run.status === 'waiting_user');

function command(
  name: string,
  check: (model: Readonly<Model>) => boolean,
  act: (model: Model, world: World) => Promise<void>,
): Command {
  return {
    check,
    run: async (model, world) => {
      await act(model, world);
      await world.check(model);
    },
    toString: () => name,
  };
}

function pick<T>(items: readonly T[], at: number): T {
  return items[at % items.length] as T;
}

const natural = fc.nat({ max: 1000 });
const engine = fc.constantFrom(...STAND_INS);
const kind = fc.constantFrom('strict', 'strict', 'not strict', 'not strict', 'auto');
const script: fc.Arbitrary<readonly Word[]> = fc
  .tuple(
    fc.array(fc.constantFrom<Word>('ask', 'ask', 'answer'), { maxLength: 3 }),
    fc.constantFrom<Word>('answer', 'answer', 'ask', 'ask', 'done', 'fail', 'exit0'),
  )
  .map(([words, last]) => words.concat(last));

async function createIn(
  model: Model,
  world: World,
  action: { engine: StandIn; kind: string; prompt: string; script: readonly Word[] },
): Promise<ModelRun> {
  const mode = action.kind === 'auto' ? 'auto' : 'interactive';
  const {
    run_id: id,
    status,
    attempt_number: attempt,
  } = await world.bench.orchestrator.create({
    engine: action.engine,
    prompt: action.prompt,
    execution_mode: mode,
    permission: 'full',
    runtime_options: {
      interactive_require_user_reply: action.kind !== 'not strict',
      session_timeout_sec: SESSION_SEC,
      max_attempt: MAX_ATTEMPT,
    },
  });
  expect([status, attempt]).toEqual(['queued', 1]);
  const run: ModelRun = {
    id,
    engine: action.engine,
    mode,
    decides: action.kind === 'not strict',
    script: action.script,
    status,
    code: null,
    attempt,
    starts: 0,
    asked: [],
    asking: null,
  };
  model.runs.push(run);
  return run;
}

const create = fc.record({ engine, kind, script }).map((action) => {
  const prompt = action.script.map((word) => DIRECTIVES[word]).join('');
  return command(`create ${action.engine} ${action.kind} ${prompt}`, always, async (model, world) => {
    const run = await createIn(model, world, { ...action, prompt });
    playTurn(run);
    await world.waitForRuns(model);
  });
});

// Ends a turn that would never end by itself: before its process exists, or after; by a person, or by a restart.
const interrupt = fc
  .record({ engine, how: fc.constantFrom('cancel', 'restart'), when: fc.constantFrom('at once', 'when it hangs') })
  .map(({ engine: name, how, when }) =>
    command(`${how} a run of ${name} that hangs, ${when}`, always, async (model, world) => {
      const run = await createIn(model, world, {
        engine: name,
        kind: 'strict',
        prompt: '[[answer Wait.]][[hang]]',
        script: [],
      });
      const started = () => startsIn(world.root).some(({ env }) => env['PARLEY_TURN'] === `${run.id}/1`);
      if (when === 'when it hangs') while (!started()) await new Promise((resolve) => setImmediate(resolve));
      if (how === 'cancel') {
        end(run, 'canceled');
        expect(await world.bench.orchestrator.cancel(run.id)).toMatchObject({ status: 'canceled' });
      } else {
        end(run, 'failed', 'ORCHESTRATOR_RESTART_INTERRUPTED');
        await world.close();
        await world.open();
      }
      await world.waitForRuns(model);
      // Whether a process started before the end is a race; that none is left is not.
      run.starts = Number(started());
    }),
  );

const response: fc.Arbitrary<Json> = fc.constantFrom<Json>(
  'A',
  'something else',
  { choice: 'A', why: ['x', 1] },
  17,
  null,
  '[[done {"ok":true}]]',
  '[[ask Which?|A|B]]',
  '[[fail]]',
  '[[exit0]]',
);

function scriptOf(response: Json): readonly Word[] {
  const word = (Object.keys(DIRECTIVES) as Word[]).find((candidate) => DIRECTIVES[candidate] === response);
  return word ? [word] : [];
}

const reply = fc.record({ at: natural, response, keyed: fc.boolean() }).map(({ at, response: value, keyed }) =>
  command(`reply ${JSON.stringify(value)} to run ${at}`, hasWaiting, async (model, world) => {
    const waiting = model.runs.filter((run) => run.status === 'waiting_user');
    const run = pick(waiting, at);
    // The rest of the script runs first, so that the model need not mix the two.
    const said = run.script.length > 0 && scriptOf(value).length > 0 ? 'A' : value;
    const sent: Reply = {
      interaction_id: pendingOf(run)?.id ?? '',
      response: said,
      ...(keyed ? { idempotency_key: `key ${run.attempt}` } : {}),
    };
    expect(await world.bench.orchestrator.reply(run.id, sent)).toMatchObject({
      status: 'queued',
      attempt_number: run.attempt + 1,
    });
    run.script = [...scriptOf(said), ...run.script];
    takeAnswer(run, 'answered', sent, false);
    await world.waitForRuns(model);
  }),
);

type Again = 'same again' | 'same key, other body' | 'no key' | 'other key' | 'finish' | 'of another run';

function replyAgain({ idempotency_key: key, ...first }: Reply, id: string, how: Again): Reply {
  const keyed = key === undefined ? {} : { idempotency_key: key };
  switch (how) {
    case 'same key, other body':
      return { interaction_id: id, response: isObject(first.response) ? 'B' : { other: true }, ...keyed };
    case 'finish':
      return { interaction_id: id, finish: true, ...keyed };
    case 'no key':
      return { ...first, interaction_id: id };
    case 'other key':
      return { ...first, interaction_id: id, idempotency_key: 'another' };
    default:
      return { ...first, interaction_id: id, ...keyed };
  }
}

// For any earlier question: the command above handles pending ones.
const lateReply = fc
  .record({
    at: natural,
    question: natural,
    how: fc.constantFrom<Again>(
      'same again',
      'same key, other body',
      'no key',
      'other key',
      'finish',
      'of another run',
    ),
  })
  .map(({ at, question, how }) =>
    command(`late reply to run ${at}: ${how}`, hasRun, async (model, world) => {
      const withResolved = model.runs.filter(({ asked }) => asked.some(({ state }) => state !== 'pending'));
      const run = pick(withResolved.length > 0 && how !== 'of another run' ? withResolved : model.runs, at);
      const others = model.runs.filter((other) => other !== run).flatMap((other) => other.asked);
      const old = (how === 'of another run' ? others : run.asked).filter(
        ({ state }) => state !== 'pending' || how === 'of another run',
      );
      const asked = old.length === 0 ? { id: 'int_none', reply: null } : pick(old, question);
      const sent = replyAgain(asked.reply ?? { interaction_id: asked.id, response: 'A' }, asked.id, how);
      const code = refusalOf(run, sent);
      if (code !== null) return world.refuses(run, code, () => world.bench.orchestrator.reply(run.id, sent));
      const before = await world.load(run);
      expect(await world.bench.orchestrator.reply(run.id, sent)).toEqual(before);
      expect(await world.load(run)).toEqual(before);
    }),
  );

const finish = natural.map((at) =>
  command(`finish run ${at}`, hasRun, async (model, world) => {
    const run = pick(model.runs, at);
    const sent: Reply = {
      interaction_id: run.asked.at(-1)?.id ?? 'int_none',
      finish: true,
      idempotency_key: `finish ${run.attempt}`,
    };
    const code = refusalOf(run, sent);
    if (code !== null) return world.refuses(run, code, () => world.bench.orchestrator.reply(run.id, sent));
    expect(await world.bench.orchestrator.reply(run.id, sent)).toMatchObject({ status: 'queued' });
    takeAnswer(run, 'answered', sent, true);
    await world.waitForRuns(model);
  }),
);

// Two people at the same moment.
const race = natural.map((at) =>
  command(`two replies at once to run ${at}`, hasWaiting, async (model, world) => {
    const waiting = model.runs.filter((run) => run.status === 'waiting_user');
    const run = pick(waiting, at);
    const sent = ['A', 'B'].map((said): Reply => ({
      interaction_id: pendingOf(run)?.id ?? '',
      response: said,
      idempotency_key: said,
    }));
    const outcomes = await Promise.allSettled(sent.map((one) => world.bench.orchestrator.reply(run.id, one)));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const winner = sent[outcomes.findIndex(({ status }) => status === 'fulfilled')] as Reply;
    takeAnswer(run, 'answered', winner, false);
    await world.waitForRuns(model);
  }),
);

const cancel = fc.record({ at: natural, times: fc.constantFrom(1, 2) }).map(({ at, times }) =>
  command(`cancel run ${at}, ${times} times`, hasRun, async (model, world) => {
    const run = pick(model.runs, at);
    if (run.status === 'succeeded' || run.status === 'failed')
      return world.refuses(run, 'RUN_ENDED', () => world.bench.orchestrator.cancel(run.id));
    for (let time = 0; time < times; time += 1) {
      expect(await world.bench.orchestrator.cancel(run.id)).toMatchObject({ status: 'canceled' });
      resolve(run, 'canceled');
      end(run, 'canceled');
    }
    return undefined;
  }),
);

// The policy decides expired ones; the others keep waiting, however late it is.
function decideDue(model: Model, now: number): ModelRun[] {
  const due = model.runs.filter((run) => run.decides && (pendingOf(run)?.dueAt ?? Infinity) <= now);
  for (const run of due) takeAnswer(run, 'auto_decided', null, pendingOf(run)?.channel === 'conversation');
  return due;
}

const timeout = fc.constantFrom(1, 2, 4).map((steps) =>
  command(`${steps * STEP_SEC} s go by`, hasRun, async (model, world) => {
    world.time.advance(steps * STEP_SEC * 1000);
    await world.waitForRuns(model, decideDue(model, world.time.now));
  }),
);

const restart = fc
  .record({ how: fc.constantFrom<'in order' | 'dropped'>('in order', 'dropped'), steps: fc.constantFrom(0, 0, 4) })
  .map(({ how, steps }) =>
    command(`restart, ${how}, ${steps * STEP_SEC} s later`, hasRun, async (model, world) => {
      await world.close(how);
      world.time.advance(steps * STEP_SEC * 1000);
      await world.open();
      await world.waitForRuns(model, decideDue(model, world.time.now));
    }),
  );

test(
  `after any history, every run equals its model and verifies (${RUNS} histories)`,
  { timeout: 60_000 + RUNS * 10_000 },
  async () => {
    const later = fc.commands(
      [create, reply, reply, reply, lateReply, lateReply, finish, race, cancel, timeout, timeout, restart, interrupt],
      { maxCommands: MAX_COMMANDS - FIRST_RUNS, size: 'max' },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(create, { minLength: FIRST_RUNS, maxLength: FIRST_RUNS }),
        later,
        async (first, history) => {
          const world = new World();
          await world.open();
          try {
            await fc.asyncModelRun(() => ({ model: { runs: [] }, real: world }), [...first, ...history]);
          } finally {
            await world.close();
          }
        },
      ),
      // Not biased: biased histories are short, and short ones cover little.
      { numRuns: RUNS, seed: SEED, endOnFailure: true, unbiased: true },
    );
  },
);
