// How the output of a turn is judged and its outcome stored, on a real store without an engine.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createRun } from '../../src/commands/create-run.js';
import { findEngine } from '../../src/engines/registry.js';
import type { TurnParser } from '../../src/engines/turn-parser.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { toTimestamp } from '../../src/kernel/clock.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { draft } from '../../src/rasp/draft.js';
import type { RaspData } from '../../src/rasp/event.js';
import { parseQuestion } from '../../src/run/interaction.js';
import { RequestError } from '../../src/run/request-error.js';
import { parseRuntimeOptions } from '../../src/run/runtime-options.js';
import type { EngineSessionHandle } from '../../src/run/session-handle.js';
import type { RunRecord } from '../../src/store/store.js';
import { TurnControl } from '../../src/turn/turn-control.js';
import {
  checkLease,
  commitTurn,
  expectApplied,
  failStart,
  judgeTurn,
  stopElsewhere,
  whileHeld,
  type TurnContext,
  type TurnOutput,
} from '../../src/turn/turn-context.js';
import { LostRunError, TurnWriter } from '../../src/turn/turn-writer.js';
import { CommandBench, T0 } from '../support/command-bench.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

const SESSION = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';
const STREAMS = { stdout: { bytes: 1, sha256: 'a' }, stderr: { bytes: 0, sha256: 'b' } };
const PARSER = { profile: 'codex_ndjson', units: 1, parsed: 1, fallbacks: 0, hit_rate: 1, warnings: {} };

let bench: CommandBench;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => bench.reset());
afterAll(() => bench.close());

type OutputChanges = Partial<Omit<TurnOutput, 'evidence'>> & { readonly evidence?: Partial<TurnOutput['evidence']> };

const outputOf = ({ evidence, ...rest }: OutputChanges = {}): TurnOutput => ({
  exit: { code: 0, signal: null },
  endedByUs: null,
  streams: STREAMS,
  parser: PARSER,
  remarks: [],
  evidence: {
    sessionId: SESSION,
    success: true,
    failure: null,
    unfinished: null,
    questions: [],
    done: null,
    lastMessage: 'Hello.',
    complaint: null,
    ...evidence,
  },
  ...rest,
});

function contextOf(run: RunRecord, changes: Partial<TurnContext> = {}): TurnContext {
  return {
    deps: bench.deps,
    engine: findEngine(run.spec.engine),
    options: parseRuntimeOptions({}),
    handle: null,
    answered: null,
    control: new TurnControl(),
    version: undefined,
    writer: new TurnWriter(bench.deps, run, () => {}),
    ...changes,
  };
}

const handleOf = ({ spec: { engine, cwd, home } }: RunRecord): EngineSessionHandle => ({
  engine,
  handle_type: 'session_id',
  handle_value: SESSION,
  cwd,
  home,
  created_at_attempt: 1,
});

const typesOf = ({ transition }: Awaited<ReturnType<typeof judgeTurn>>) =>
  (transition.before ?? []).map(({ type }) => type);
const dataOf = <T>({ transition }: Awaited<ReturnType<typeof judgeTurn>>, type: string): T =>
  transition.before?.find((each) => each.type === type)?.data as T;

describe('the session of a turn', () => {
  test('is confirmed by a first turn whose session exists', async () => {
    const run = await bench.running();
    const outcome = await judgeTurn(contextOf(run), outputOf());
    expect(typesOf(outcome)).toEqual(['lifecycle.session.confirmed', 'lifecycle.turn.ended', 'interaction.requested']);
    expect(outcome.conclusion.verdict.event).toBe('turn.needs_input');
    const done = await commitTurn(contextOf(run), outcome);
    expect(done.status).toBe('waiting_user');
    expect(await bench.store.loadHandle(run.request_id)).toEqual(handleOf(run));
  });

  test('is not confirmed if it does not exist, if none is named, or by a later turn', async () => {
    const run = await bench.running();
    bench.stub.hasSession = false;
    const missing = await judgeTurn(contextOf(run), outputOf());
    expect(typesOf(missing)).not.toContain('lifecycle.session.confirmed');
    expect(missing.conclusion.verdict.event).toBe('turn.failed');
    bench.stub.hasSession = true;
    const unnamed = await judgeTurn(contextOf(run), outputOf({ evidence: { sessionId: null } }));
    expect(typesOf(unnamed)).not.toContain('lifecycle.session.confirmed');
    expect(unnamed.conclusion.verdict.event).toBe('turn.failed');
    const resumed = await judgeTurn(contextOf(run, { handle: handleOf(run) }), outputOf());
    expect(typesOf(resumed)).toEqual(['lifecycle.turn.ended', 'interaction.requested']);
  });

  test('of a resumed turn must be the resumed one', async () => {
    const run = await bench.running();
    const handle = { ...handleOf(run), handle_value: '02a1e065-6fe8-7fd2-a5f7-dea3d46cd55c' };
    const { conclusion } = await judgeTurn(contextOf(run, { handle }), outputOf());
    expect(conclusion.error?.code).toBe('SESSION_RESUME_FAILED');
  });

  test('in a process is valid while the process runs', async () => {
    bench.stub.resume = { resumes: false, problem: 'it cannot' };
    bench.stub.hasSession = new Error('there are no files to look for');
    const deps = { ...bench.deps, mayNeedProcess: true };
    const request = { engine: 'codex-app-server', prompt: 'Go.', execution_mode: 'interactive' } as const;
    const run = await bench.apply(await createRun(deps, request, {}), { event: 'turn.started' });
    const alive = await judgeTurn(contextOf(run), outputOf({ outlived: true }));
    expect(dataOf<JsonObject>(alive, 'lifecycle.session.confirmed')).toMatchObject({
      session: { handle_type: 'process' },
    });
    const exited = await judgeTurn(contextOf(run), outputOf());
    expect(typesOf(exited)).not.toContain('lifecycle.session.confirmed');
  });
});

describe('the judgement', () => {
  test('has the time of the newest event if the clock was set back', async () => {
    bench.clock.at = T0 + 5000;
    const run = await bench.running();
    bench.clock.at = T0;
    const early = await judgeTurn(contextOf(run), outputOf());
    expect(dataOf<JsonObject>(early, 'interaction.requested').asked_at).toBe(toTimestamp(T0 + 5000));
    bench.clock.at = T0 + 9000;
    const later = await judgeTurn(contextOf(run), outputOf());
    expect(dataOf<JsonObject>(later, 'interaction.requested').asked_at).toBe(toTimestamp(T0 + 9000));
  });

  test('ends the run at the last attempt', async () => {
    const run = await bench.running();
    const context = contextOf(run, { options: parseRuntimeOptions({ max_attempt: 1 }) });
    const question = parseQuestion('Which?', 'tool');
    const { conclusion } = await judgeTurn(context, outputOf({ evidence: { questions: [question] } }));
    expect(conclusion.verdict.event).toBe('turn.failed');
  });

  test('names who canceled the turn, and carries remarks and the digest of the journal', async () => {
    const run = await bench.running();
    const context = contextOf(run);
    const ann = { kind: 'token', name: 'ann' } as const;
    context.control.canceledBy = ann;
    const remarks = [draft('diagnostic.engine.warning', { message: 'left behind' })];
    const outcome = await judgeTurn(context, outputOf({ endedByUs: 'canceled', remarks }));
    expect(outcome.transition).toMatchObject({ event: 'run.canceled', actor: ann });
    expect(typesOf(outcome)).toContain('diagnostic.engine.warning');
    expect(dataOf<RaspData['lifecycle.turn.ended']>(outcome, 'lifecycle.turn.ended').digest).toBe(run.heads.digest);
  });

  test('of a turn that a person stopped differs from that of one that ended by itself', async () => {
    const run = await bench.running({}, {});
    const [stopped, ended] = [
      await judgeTurn(contextOf(run), outputOf({ stopped: true })),
      await judgeTurn(contextOf(run), outputOf()),
    ];
    expect(stopped.conclusion.verdict.reasonCode).not.toBe(ended.conclusion.verdict.reasonCode);
  });

  test('of a process that outlived its turn ignores its exit', async () => {
    const run = await bench.running();
    const exit = { code: null, signal: 'SIGKILL' } as const;
    const alive = await judgeTurn(contextOf(run), outputOf({ exit, outlived: true }));
    expect(alive.conclusion.verdict.event).toBe('turn.needs_input');
  });
});

describe('the output of a run with a schema', () => {
  const schema = { type: 'object', required: ['a'], properties: { a: { type: 'number' } } };
  const judge = async (evidence: Partial<TurnOutput['evidence']>, withSchema = true) => {
    const request = { execution_mode: 'auto', ...(withSchema ? { output_schema: schema } : {}) } as const;
    return (await judgeTurn(contextOf(await bench.running(request)), outputOf({ evidence }))).conclusion;
  };

  test('is the result of the agent, else its last message', async () => {
    expect((await judge({ done: { result: { a: 1 } }, lastMessage: 'x' })).verdict).toMatchObject({ result: { a: 1 } });
    expect((await judge({ lastMessage: '{"a":2}' })).verdict).toMatchObject({ result: { a: 2 } });
    expect((await judge({ success: false, done: { result: { a: 3 } } })).verdict).toMatchObject({ result: { a: 3 } });
  });

  test('fails the run if it does not fit or is not JSON', async () => {
    expect((await judge({ lastMessage: '{"a":"x"}' })).error?.message).toMatch(/number/);
    expect((await judge({ success: false, done: { result: { a: 'x' } } })).error?.message).toMatch(/number/);
    expect((await judge({ lastMessage: 'Hello.' })).error?.message).toContain('the last message is not JSON');
    expect((await judge({ lastMessage: null })).error?.message).toContain('the last message is not JSON');
  });

  test('is not checked without a schema, or if the turn did not succeed', async () => {
    expect((await judge({ lastMessage: 'Hello.' }, false)).verdict.event).toBe('turn.succeeded');
    const { error } = await judge({ success: false, lastMessage: 'Hello.', unfinished: 'NO_TURN_COMPLETED' });
    expect(error?.message).not.toContain('JSON');
  });
});

const resultOf = (run: RunRecord) => join(runFolder(bench.deps.dataDir, run.run_id).path, 'result.json');

describe('the commit of a turn', () => {
  test('writes the result before it is stored', async () => {
    const run = await bench.running();
    const context = contextOf(run);
    const done = await commitTurn(context, await judgeTurn(context, outputOf({ evidence: { done: { result: 7 } } })));
    expect(done).toMatchObject({ status: 'succeeded', result: 7 });
    expect(readFileSync(resultOf(run), 'utf8')).toBe('7\n');
    expect((await bench.eventsOf(run.run_id)).at(-2)?.event.type).toBe('artifact.result.written');
  });

  test('writes no file for a turn without a result', async () => {
    const run = await bench.running();
    const context = contextOf(run);
    await commitTurn(context, await judgeTurn(context, outputOf()));
    expect(existsSync(resultOf(run))).toBe(false);
  });

  test('is refused for a turn that was lost, or whose host has no lease', async () => {
    const run = await bench.running();
    const ownership = { ...bench.deps.ownership, mayRun: () => false };
    const unleased = contextOf(run, { deps: { ...bench.deps, ownership } });
    const outcome = await judgeTurn(unleased, outputOf({ evidence: { done: { result: 7 } } }));
    await expect(commitTurn(unleased, outcome)).rejects.toThrow('the lease of this one has expired');
    const lost = contextOf(run);
    lost.control.lose();
    await expect(commitTurn(lost, outcome)).rejects.toThrow(`the turn of run ${run.run_id} was abandoned`);
    expect(existsSync(resultOf(run))).toBe(false);
    expect(await bench.store.loadRun(run.run_id)).toEqual(run);
    expect(() => checkLease(lost)).not.toThrow();
    expect(() => checkLease(unleased)).toThrow(LostRunError);
  });
});

const depsOf = (timers: SimulatedTimers, mayRun = true) => ({
  timers,
  ownership: { ...bench.deps.ownership, mayRun: () => mayRun },
});

describe('work while the store is unavailable', () => {
  const unavailable = new RequestError('STORE_UNAVAILABLE', 'the database is away');
  test('is repeated every half second while the turn belongs to this host', async () => {
    const timers = new SimulatedTimers();
    let tries = 0;
    const work = whileHeld(depsOf(timers), async () => {
      if ((tries += 1) < 3) throw unavailable;
      return tries;
    });
    for (let round = 1; round < 3; round += 1) {
      await timers.armed(500);
      expect(tries).toBe(round);
      timers.advance(500);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await work).toBe(3);
  });

  test('is not repeated without a lease or after another error', async () => {
    const timers = new SimulatedTimers();
    await expect(whileHeld(depsOf(timers, false), () => Promise.reject(unavailable))).rejects.toBe(unavailable);
    const refused = new RequestError('RUN_NOT_FOUND', 'no such run');
    await expect(whileHeld(depsOf(timers), () => Promise.reject(refused))).rejects.toBe(refused);
    const other = Object.assign(new Error('x'), { code: 'STORE_UNAVAILABLE' });
    await expect(whileHeld(depsOf(timers), () => Promise.reject(other))).rejects.toBe(other);
  });
});

const stops = (handle: object | null, boundSession: string | null): boolean => {
  const control = new TurnControl();
  let isEnded = false;
  control.attach({ end: () => (isEnded = true) });
  stopElsewhere({ handle, control } as never, { boundSession } as TurnParser);
  return isEnded;
};

test('an engine that works in another session is stopped', () => {
  expect(stops({ handle_value: 's-1' }, 's-2')).toBe(true);
  expect(stops({ handle_value: 's-1' }, 's-1')).toBe(false);
  expect(stops({ handle_value: 's-1' }, null)).toBe(false);
  expect(stops(null, 's-2')).toBe(false);
});

describe('a start that failed', () => {
  const error = { code: 'ENGINE_NOT_FOUND', message: 'codex not found' } as const;

  test('fails the run with its error, after its events are stored', async () => {
    const run = await bench.running();
    const context = contextOf(run);
    void context.writer.add([draft('agent.message.final', { text: 'Hello.' })]);
    void context.writer.add([draft('agent.message.final', { text: 'More.' })]);
    expect(await failStart(context, error)).toMatchObject({ status: 'failed', error });
    const texts = (await bench.eventsOf(run.run_id)).flatMap(({ data }) => data.text ?? []);
    expect(texts).toEqual(['Hello.', 'More.']);
  });

  test('of a resumed turn is a failed resume', async () => {
    const run = await bench.running();
    const failed = await failStart(contextOf(run, { handle: handleOf(run) }), error);
    expect(failed.error).toMatchObject({
      code: 'SESSION_RESUME_FAILED',
      details: { cause: { code: 'ENGINE_NOT_FOUND' } },
    });
  });
});

test('a change that was not applied is an error with its reason', () => {
  const run = { run_id: 'run_1' } as RunRecord;
  expect(expectApplied({ applied: true, run } as never)).toBe(run);
  expect(() => expectApplied({ applied: false, conflict: 'epoch' } as never)).toThrow(
    new LostRunError('the run was changed by another writer (epoch)'),
  );
  const refusal = { legal: false, event: 'turn.failed', state: 'queued' };
  expect(() => expectApplied({ applied: false, refusal } as never)).toThrow(
    new LostRunError('turn.failed is not possible in queued'),
  );
});
