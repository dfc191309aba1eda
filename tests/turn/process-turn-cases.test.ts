// A turn in a process of its own, on a real store: shell scripts print what an engine would print.
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { appendAsk } from '../../src/ask/ask-file.js';
import { findEngine } from '../../src/engines/registry.js';
import type { EngineCommand } from '../../src/engines/engine.js';
import type { EngineRuntime, TurnNeeds } from '../../src/machine/engine-runtime.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { DRAIN_LOOK_MS } from '../../src/process/drain.js';
import { parseRuntimeOptions } from '../../src/run/runtime-options.js';
import type { RunRecord } from '../../src/store/store.js';
import { runProcessTurn } from '../../src/turn/process-turn.js';
import { LostRunError } from '../../src/turn/turn-writer.js';
import { CommandBench, SESSION } from '../support/command-bench.js';
import {
  codexSays,
  dataOf,
  handleOf,
  LIMITS,
  print,
  sceneOf,
  type SceneChanges,
  shellCommand,
  SOON,
  typesOf,
} from '../support/turn-scene.js';

const OTHER = '02a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';
const PATH = process.env['PATH'] ?? '';
const ANSWERS = print(codexSays.session(), codexSays.message('Hello.'), codexSays.end());
// Looks often, and gives a busy machine time.
const POLL = { interval: 2, timeout: 20_000 };
// Prints nothing more and does not exit.
const HANGS = 'exec sleep 1000';

let bench: CommandBench;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => bench.reset());
afterAll(() => bench.close());

const attemptOf = (run: RunRecord) => runFolder(bench.deps.dataDir, run.run_id).attempt(run.attempt_number);
const withRuntime = (runtime: Partial<EngineRuntime>): SceneChanges => ({
  deps: { runtime: { ...bench.deps.runtime, environment: () => ({ PATH }), ...runtime } },
});

async function begin(
  script: string,
  {
    command = {},
    auto = true,
    ...changes
  }: SceneChanges & { readonly command?: Partial<EngineCommand>; readonly auto?: boolean } = {},
) {
  const run = await bench.running(auto ? { execution_mode: 'auto' } : {});
  const scene = sceneOf(bench, run, { ...withRuntime({}), ...changes });
  const start = () => runProcessTurn(scene.context, shellCommand(script, run.spec.cwd, command), null);
  return { ...scene, start, events: () => bench.eventsOf(run.run_id) };
}

describe('a turn in its own process', () => {
  test('stores the process, its output and the outcome', async () => {
    const { start, events, run } = await begin(`echo $$ > pid\n${ANSWERS}`);
    expect(await start()).toMatchObject({ status: 'succeeded', result: 'Hello.' });
    const pid = Number(readFileSync(join(run.spec.cwd, 'pid'), 'utf8'));
    expect(dataOf(await events(), 'lifecycle.process.spawned')).toEqual({
      pid,
      start_time: expect.stringMatching(/^\d+/) as string,
    });
    expect(dataOf(await events(), 'lifecycle.turn.ended')).toMatchObject({
      exit: { code: 0, signal: null },
      parser: { units: 3, parsed: 3 },
    });
    expect(typesOf(await events())).not.toContain('diagnostic.engine.warning');
  });

  test('gives the process its input, and the variables of the command before those of the home', async () => {
    const { start, run } = await begin(`cat > input; echo "$A $B" > variables; ${ANSWERS}`, {
      ...withRuntime({ environment: () => ({ PATH, A: 'home', B: 'home' }) }),
      command: { stdin: 'Grüße', env: { B: 'command' } },
    });
    await start();
    expect(readFileSync(join(run.spec.cwd, 'input'), 'utf8')).toBe('Grüße');
    expect(readFileSync(join(run.spec.cwd, 'variables'), 'utf8')).toBe('home command\n');
  });

  test('gives the command of the question tool to the home, if there is one', async () => {
    const needs: TurnNeeds[] = [];
    const environment: EngineRuntime['environment'] = (_engine, _run, turn) => {
      needs.push(turn);
      return { PATH };
    };
    for (const ask of [null, { command: ['ask', 'me'], file: '/nowhere', nonce: 'n' }]) {
      const { context, run } = await begin('', withRuntime({ environment }));
      await runProcessTurn(context, shellCommand(ANSWERS, run.spec.cwd), ask);
    }
    expect(needs.map(({ ask }) => ask)).toEqual([null, ['ask', 'me']]);
  });

  test('fails with the reason why it was not prepared, and starts nothing', async () => {
    const { run } = await begin('');
    const { context } = sceneOf(bench, { ...run, spec: { ...run.spec, cwd: join(bench.root, 'gone') } });
    expect(await runProcessTurn(context, shellCommand(ANSWERS, bench.root), null)).toMatchObject({
      status: 'failed',
      error: { code: 'WORKING_FOLDER_UNUSABLE' },
    });
    expect(existsSync(attemptOf(run).logs.stdout)).toBe(false);
  });

  test('starts nothing without a lease', async () => {
    const deps = { ownership: { ...bench.deps.ownership, mayRun: () => false } };
    const { start, run } = await begin(ANSWERS, { deps });
    await expect(start()).rejects.toThrow(LostRunError);
    expect(existsSync(attemptOf(run).logs.stdout)).toBe(false);
  });

  test('fails if its program cannot be started; a resumed turn has failed to resume', async () => {
    const command = { argv: [join(bench.root, 'no-such-program')] };
    const first = await begin('', { command });
    expect((await first.start()).error?.code).toBe('ENGINE_NOT_FOUND');
    const resumed = await begin('', { command, handle: handleOf(first.run) });
    mkdirSync(resumed.run.spec.cwd, { recursive: true });
    expect((await resumed.start()).error).toMatchObject({
      code: 'SESSION_RESUME_FAILED',
      details: { cause: { code: 'ENGINE_NOT_FOUND' } },
    });
    expect(typesOf(await first.events())).not.toContain('lifecycle.process.spawned');
  });

  test('is ended by a cancel request that came before its process', async () => {
    const { start, control } = await begin(HANGS, { options: parseRuntimeOptions(SOON) });
    await control.cancel({ at: bench.clock.at, actor: null });
    expect((await start()).status).toBe('canceled');
  });
});

describe('the record of the started command', () => {
  test('is for people: without keys and values, and readable by its owner only', async () => {
    const key = `sk-${'a1B2'.repeat(8)}`;
    const { start, run } = await begin('', {
      ...withRuntime({ environment: () => ({ PATH, TOKEN: key }) }),
      command: { argv: ['/bin/sh', '-c', ANSWERS, key], stdin: 'Grüße', env: { A: '1' } },
    });
    await start();
    const path = join(attemptOf(run).path, 'command.json');
    const argv = ['/bin/sh', '-c', ANSWERS, '[redacted]'];
    const record = { argv, cwd: run.spec.cwd, stdin_bytes: 7, env: ['A', 'PATH', 'TOKEN'] };
    expect(readFileSync(path, 'utf8')).toBe(`${JSON.stringify(record, null, 2)}\n`);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('says that there was no input', async () => {
    const { start, run } = await begin(ANSWERS);
    await start();
    const record = readFileSync(join(attemptOf(run).path, 'command.json'), 'utf8');
    expect(JSON.parse(record)).toMatchObject({ stdin_bytes: null });
  });
});

const inMs = (seconds: number): number => seconds * 1000;
const armed = (limits: { lengths(): number[] }, expected: readonly number[]) =>
  expect.poll(() => limits.lengths(), POLL).toEqual(expected.map(inMs));

describe('the limits of a turn', () => {
  const { turn_timeout_sec: turn, idle_timeout_sec: idle, tool_timeout_sec: tool, silence_notice_sec: notice } = LIMITS;

  test('end a silent engine, after the silence was reported', async () => {
    const options = parseRuntimeOptions({ ...LIMITS, turn_timeout_sec: null });
    const { start, limits, events } = await begin(HANGS, { options });
    const ended = start();
    await armed(limits, [notice, idle]);
    limits.advance(inMs(notice));
    await expect.poll(async () => typesOf(await events()), POLL).toContain('lifecycle.turn.silent');
    expect(dataOf(await events(), 'lifecycle.turn.silent')).toMatchObject({ tool_running: false });
    limits.advance(inMs(idle - notice));
    expect((await ended).error?.code).toBe('ENGINE_IDLE_TIMEOUT');
  });

  test('are longer while a tool runs', async () => {
    const { start, limits } = await begin(`${print(codexSays.session(), codexSays.tool())}\n${HANGS}`);
    const ended = start();
    await armed(limits, [notice, tool, turn]);
    limits.advance(inMs(tool));
    expect((await ended).error?.code).toBe('TOOL_CALL_TIMEOUT');
  });

  test('include its duration, if that is limited', async () => {
    const long = { ...LIMITS, idle_timeout_sec: 2000, tool_timeout_sec: 2000 };
    const { start, limits } = await begin(HANGS, { options: parseRuntimeOptions(long) });
    const ended = start();
    await armed(limits, [notice, turn, 2000]);
    limits.advance(inMs(turn));
    expect((await ended).error?.code).toBe('TURN_TIMEOUT');
  });
});

describe('an engine is stopped', () => {
  const options = parseRuntimeOptions(SOON);

  test('if it repeats itself without end', async () => {
    const step = { type: 'step_finish', sessionID: 'ses_1', part: { reason: 'unknown' } };
    const script = `${print(...Array.from({ length: 20 }, () => step))}\n${HANGS}`;
    const { start } = await begin(script, { engine: findEngine('opencode'), options });
    expect((await start()).error).toMatchObject({
      code: 'ENGINE_TURN_FAILED',
      message: expect.stringContaining('repeated itself') as string,
    });
  });

  test('if it works in another session than the one to continue', async () => {
    const run = await bench.running();
    mkdirSync(run.spec.cwd, { recursive: true });
    const script = `${print(codexSays.session(OTHER))}\n${HANGS}`;
    const { context } = sceneOf(bench, run, { ...withRuntime({}), handle: handleOf(run), options });
    const start = () => runProcessTurn(context, shellCommand(script, run.spec.cwd), null);
    expect((await start()).error).toMatchObject({
      code: 'SESSION_RESUME_FAILED',
      message: expect.stringContaining(OTHER) as string,
    });
  });
});

describe('an error of ours', () => {
  test('while the output is read ends the process and is thrown', async () => {
    const defect = new Error('a defect of the parser');
    const codex = findEngine('codex');
    const createReader: typeof codex.createReader = (...parts) => ({
      ...codex.createReader(...parts),
      stdoutLine: () => {
        throw defect;
      },
    });
    const { start, run } = await begin(`${ANSWERS}\n${HANGS}`, { engine: { ...codex, createReader } });
    await expect(start()).rejects.toBe(defect);
    expect((await bench.store.loadRun(run.run_id))?.status).toBe('running');
  });
});

test('a process that was left behind is reported, and the turn counts', async () => {
  const { context, run, events } = await begin('');
  const waits: (() => void)[] = [];
  // The look at the open pipe is the only timer that is not real.
  const { timers } = context.deps;
  const set: typeof timers.set = (ms, fire) => {
    if (ms !== DRAIN_LOOK_MS) return timers.set(ms, fire);
    waits.push(fire);
    return () => {};
  };
  const deps = { ...context.deps, timers: { set } };
  // No mark, a session of its own, and its parent exits before anyone looks.
  const script = `mkfifo there; (env -i setsid sh -c 'echo $$ > there; exec sleep 1000' &); read pid < there
    echo $pid > left; ${ANSWERS}`;
  const ended = runProcessTurn({ ...context, deps }, shellCommand(script, run.spec.cwd), null);
  await expect.poll(() => waits.length, POLL).toBeGreaterThan(0);
  waits[0]?.();
  const done = await ended.finally(() => {
    process.kill(Number(readFileSync(join(run.spec.cwd, 'left'), 'utf8')), 'SIGKILL');
  });
  expect(done).toMatchObject({ status: 'succeeded', result: 'Hello.' });
  expect(dataOf(await events(), 'diagnostic.engine.warning')?.['message']).toContain('still holds the output');
});

// Runs a turn and returns its warning about another session.
async function warning(chosenSession: string | undefined, script: string): Promise<unknown> {
  const command = chosenSession === undefined ? {} : { chosenSession };
  const { start, events } = await begin(script, { command });
  await start();
  return (await events()).find(({ data }) => data['code'] === 'SESSION_ID_CHANGED')?.data['message'];
}

describe('the session of the output', () => {
  test('is compared with the one that was chosen', async () => {
    expect(await warning(OTHER, ANSWERS)).toBe(
      `the session was to have the id ${OTHER}, but the output names ${SESSION}`,
    );
    expect(await warning(SESSION, ANSWERS)).toBeUndefined();
  });

  test('is not compared if none was chosen or none is named', async () => {
    expect(await warning(undefined, ANSWERS)).toBeUndefined();
    expect(await warning(OTHER, print(codexSays.message('Hello.'), codexSays.end()))).toBeUndefined();
  });
});

test('a question that the tool recorded is asked, and what is odd about it is remarked', async () => {
  const { context, run, events } = await begin('', { auto: false });
  const file = join(bench.folder('asks'), 'asks.jsonl');
  appendAsk(file, 'nonce', { type: 'asked', question: { prompt: 'Which port?' } });
  const ask = { command: ['ask'], file, nonce: 'nonce' };
  expect((await runProcessTurn(context, shellCommand(ANSWERS, run.spec.cwd), ask)).status).toBe('waiting_user');
  expect(dataOf(await events(), 'interaction.requested')?.['prompt']).toBe('Which port?');
  const remarks = (await events()).flatMap(({ data }) => data['code'] ?? []);
  expect(remarks).toEqual(['ASK_TOOL_NOT_LISTED', 'ASK_WITNESS_MISSING']);
});
