// One turn of a run from the queue to its end, on a real store: a shell script is the engine.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createRun } from '../../src/commands/create-run.js';
import { newMemory } from '../../src/engines/turn-parser.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { logsOf } from '../../src/journal/turn-logs.js';
import { findEngine } from '../../src/engines/registry.js';
import type { EngineRuntime, TurnNeeds } from '../../src/machine/engine-runtime.js';
import { runError } from '../../src/run/run-error.js';
import type { RunRecord, Store } from '../../src/store/store.js';
import { NotBegunError } from '../../src/turn/begin-turn.js';
import { Residents } from '../../src/turn/residents/residents.js';
import { runTurn } from '../../src/turn/run-turn.js';
import { TurnControl } from '../../src/turn/turn-control.js';
import { alterStore } from '../support/altered-store.js';
import { CommandBench, type QuestionName } from '../support/command-bench.js';
import { ScriptedResident, serverSays } from '../support/scripted-resident.js';
import { SimulatedTimers } from '../support/simulated-timers.js';
import { codexSays, dataOf, print, reply, typesOf } from '../support/turn-scene.js';

const PATH = process.env['PATH'] ?? '';
const ANSWERS = [codexSays.session(), codexSays.message('Hello.'), codexSays.end()];
const RESIDENT = 'codex-app-server';
const ON_RESIDENT = { engine: RESIDENT, prompt: 'Go.', execution_mode: 'auto' } as const;

let bench: CommandBench;
let residents: Residents;
let scripts = 0;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => {
  bench.reset();
  bench.stub.resume = { resumes: true, problem: null };
  residents = new Residents(new SimulatedTimers(), { parkAfterMs: 1000, max: 9 }, () => {});
});
afterAll(() => bench.close());

// A program that keeps its arguments, one per line, and prints these lines.
function program(messages: readonly object[] = ANSWERS, rest = ''): readonly string[] {
  const path = join(bench.root, `engine-${(scripts += 1)}.sh`);
  writeFileSync(path, `printf '%s\\n' "$@" > arguments\n${print(...messages)}\n${rest}`);
  return ['/bin/sh', path];
}

interface Changes {
  readonly program?: readonly string[] | null;
  readonly runtime?: Partial<EngineRuntime>;
  readonly store?: Partial<Store>;
  readonly control?: TurnControl;
  readonly marksStarts?: boolean;
}

function start(
  queued: RunRecord,
  { program: path = program(), runtime = {}, store = {}, control = new TurnControl(), marksStarts = false }: Changes,
): Promise<RunRecord> {
  const deps = {
    ...bench.deps,
    store: alterStore(bench.store, store),
    runtime: { ...bench.deps.runtime, environment: () => ({ PATH }), findProgram: async () => path, ...runtime },
  };
  return runTurn({ deps, queued, control, residents, marksStarts });
}

const auto = () => bench.queued({ execution_mode: 'auto' });
const load = (run: RunRecord) => bench.store.loadRun(run.run_id);
const argumentsOf = (run: RunRecord) => readFileSync(join(run.spec.cwd, 'arguments'), 'utf8');
const startOf = async (run: RunRecord) => dataOf(await bench.eventsOf(run.run_id), 'lifecycle.turn.started');

async function answered(name: QuestionName = 'text', finish = false): Promise<RunRecord> {
  const { run } = await bench.waiting(name);
  return reply(bench, run, 'The first.', { finish });
}

describe('a first turn', () => {
  test('runs the engine with the prompt and stores the outcome', async () => {
    const run = await auto();
    expect(await start(run, {})).toMatchObject({ status: 'succeeded', result: 'Hello.' });
    expect(argumentsOf(run)).toContain('\nBuild it.\n');
    expect(argumentsOf(run)).not.toContain('--model');
    expect(argumentsOf(run)).not.toContain('mcp_servers');
    expect(await startOf(run)).toMatchObject({ resumed: false, cwd: run.spec.cwd });
  });

  test('gives the engine its model, and records its version and its command without keys', async () => {
    const key = `sk-${'a1B2'.repeat(8)}`;
    const run = await bench.queued({ execution_mode: 'auto', model: 'gpt-9' });
    const path = [...program(), key];
    const versions: unknown[] = [];
    const versionOf: EngineRuntime['versionOf'] = ({ name }, path) => {
      versions.push([name, path]);
      return '1.2.3';
    };
    await start(run, { program: path, runtime: { versionOf } });
    expect(argumentsOf(run)).toContain('--model=gpt-9\n');
    expect(versions).toEqual([['codex', path]]);
    const { argv, engine_version } = (await startOf(run)) as { argv: string[]; engine_version: string };
    expect([argv.slice(0, 4), engine_version]).toEqual([[...path.slice(0, 2), '[redacted]', 'exec'], '1.2.3']);
  });

  test('gets the question tool if its engine can be given one and a person may be asked', async () => {
    const needs: TurnNeeds[] = [];
    const runtime: Partial<EngineRuntime> = {
      askTool: ['parley', 'ask'],
      environment: (_engine, _run, turn) => {
        needs.push(turn);
        return { PATH };
      },
    };
    const asks = await bench.queued();
    await start(asks, { runtime });
    await start(await bench.queued({ engine: 'iflow' }), { runtime });
    await start(await auto(), { runtime });
    expect(needs.map(({ ask }) => ask?.slice(0, 3) ?? null)).toEqual([['parley', 'ask', '--file'], null, null]);
    expect(argumentsOf(asks)).toContain('mcp_servers.parley.command="parley"\n');
  });

  test('warns if its engine has not shown that it can resume', async () => {
    const codes = async (run: RunRecord) =>
      (await bench.eventsOf(run.run_id)).flatMap(({ data }) => data['code'] ?? []);
    bench.stub.resume = { resumes: false, problem: 'no such option' };
    const first = await bench.queued();
    await start(first, {});
    expect(await codes(first)).toEqual(['RESUME_NOT_PROVED']);
    const missing = await bench.queued();
    await start(missing, { program: null });
    expect(await codes(missing)).not.toContain('RESUME_NOT_PROVED');
    const resumed = await answered();
    await start(resumed, {});
    expect(await codes(resumed)).not.toContain('RESUME_NOT_PROVED');
  });

  test('reads no answer', async () => {
    const store = { loadLatestInteraction: () => Promise.reject(new Error('nothing was asked')) };
    expect((await start(await auto(), { store })).status).toBe('succeeded');
  });

  test('is marked in the store before it starts, if the host marks its starts', async () => {
    const marked: string[] = [];
    const markStarting = async (runId: string) =>
      void marked.push(`${runId} ${(await bench.store.loadRun(runId))?.status}`);
    const run = await auto();
    await start(run, { store: { markStarting }, marksStarts: true });
    await start(await auto(), { store: { markStarting } });
    expect(marked).toEqual([`${run.run_id} queued`]);
  });

  test('records a cancel request that came before it', async () => {
    const control = new TurnControl();
    const run = await auto();
    await control.cancel({ at: bench.clock.at, actor: null });
    const canceled = await start(run, { control, program: program(ANSWERS, 'exec sleep 1000') });
    expect(canceled.status).toBe('canceled');
    expect(typesOf(await bench.eventsOf(run.run_id))).toContain('lifecycle.cancel.requested');
  });
});

describe('a later turn', () => {
  test('continues the session with the answer', async () => {
    const run = await answered();
    expect((await start(run, {})).status).toBe('waiting_user');
    expect(argumentsOf(run)).toMatch(/\nresume\n\S+\nThe first\.\n$/);
    const started = (await bench.eventsOf(run.run_id)).filter(({ event }) => event.type === 'lifecycle.turn.started');
    expect(started.map(({ data }) => data['resumed'])).toEqual([true]);
  });

  test('ends the conversation without an engine if the person finished it', async () => {
    const run = await answered('conversation', true);
    keep(run);
    expect(await start(run, {})).toMatchObject({ status: 'succeeded', result: 'The turn ended.' });
    expect([existsSync(join(run.spec.cwd, 'arguments')), residents.kept()]).toEqual([false, []]);
  });

  test('fails if its session is not stored, and ends its process', async () => {
    const run = await answered();
    keep(run);
    const failed = await start(run, { store: { loadHandle: async () => null } });
    expect([failed.status, failed.error?.code]).toEqual(['failed', 'SESSION_RESUME_FAILED']);
    expect([existsSync(join(run.spec.cwd, 'arguments')), residents.kept()]).toEqual([false, []]);
  });
});

// A process that waits for the answer of the run.
function keep(run: RunRecord): ScriptedResident {
  const logs = logsOf(findEngine(RESIDENT), runFolder(bench.deps.dataDir, run.run_id), run.attempt_number);
  const resident = new ScriptedResident(logs, {
    converse: (self) => self.print(serverSays.message('Hello.'), serverSays.end()),
  });
  residents.keep(run.run_id, { resident, memory: newMemory(), request: null, isNeeded: false });
  return resident;
}

describe('a turn of a resident engine', () => {
  test('runs in the process that waits for it, which was started by no command', async () => {
    const run = await createRun(bench.deps, ON_RESIDENT, {});
    const resident = keep(run);
    resident.print(serverSays.hello(), serverSays.thread());
    expect(await start(run, {})).toMatchObject({ status: 'succeeded', result: 'Hello.' });
    expect(resident.calls).toMatchObject([{ prompt: expect.stringContaining('Go.') as string }, 'close']);
    expect([residents.kept(), (await startOf(run))?.['argv']]).toEqual([[], []]);
  });

  test('closes that process if the program is no longer installed', async () => {
    const run = await createRun(bench.deps, ON_RESIDENT, {});
    const resident = keep(run);
    expect((await start(run, { program: null })).error?.code).toBe('ENGINE_NOT_FOUND');
    expect([resident.isAlive, residents.kept()]).toEqual([false, []]);
  });
});

describe('a turn is not started', () => {
  test('if its run crashed its host twice', async () => {
    const run = { ...(await auto()), crashes: 2 };
    const ended = await start(run, {});
    expect([ended.status, ended.error?.details?.['reason']]).toEqual(['failed', 'HOST_CRASHED_TWICE']);
    expect(existsSync(join(run.spec.cwd, 'arguments'))).toBe(false);
  });

  test('if the host shuts down: the run stays queued', async () => {
    const control = new TurnControl();
    control.shutdown();
    const run = await auto();
    expect(await start(run, { control })).toBe(run);
    expect(await load(run)).toEqual(run);
  });

  test('if somebody canceled its run first', async () => {
    const run = await auto();
    const canceled = await bench.end(run, 'canceled');
    expect(await start(run, {})).toEqual(canceled);
    expect(existsSync(join(run.spec.cwd, 'arguments'))).toBe(false);
  });

  test('if the store refuses its mark or its basis; it can be tried again', async () => {
    const cause = new Error('the disk is full');
    const fails = () => Promise.reject(cause);
    const again = await answered();
    const tries: [RunRecord, Changes][] = [
      [await auto(), { store: { markStarting: fails }, marksStarts: true }],
      [await auto(), { store: { loadHandle: fails } }],
      [again, { store: { loadLatestInteraction: fails } }],
    ];
    for (const [run, changes] of tries) {
      const error: unknown = await start(run, changes).catch((problem: unknown) => problem);
      expect(error).toBeInstanceOf(NotBegunError);
      expect((error as Error).cause).toBe(cause);
      expect(await load(run)).toMatchObject({ status: 'queued' });
    }
  });

  test('if its program is missing, with the reason that the machine knows', async () => {
    const versions: unknown[] = [];
    const versionOf: EngineRuntime['versionOf'] = (_engine, path) => void versions.push(path);
    const plain = await start(await auto(), { program: null, runtime: { versionOf } });
    expect(versions).toEqual([]);
    expect(plain).toMatchObject({ status: 'failed', error: { code: 'ENGINE_NOT_FOUND' } });
    expect(plain.error?.message).toContain('codex');
    const error = runError('ENGINE_NOT_FOUND.not_installed', { program: 'mine', install: 'build it' });
    const explained = await start(await auto(), { program: null, runtime: { explainMissing: () => error } });
    expect(explained.error?.message).toContain('mine');
  });
});

describe('the slot of an engine', () => {
  test('is taken before the start and given back after the turn, however that ended', async () => {
    const slots: string[] = [];
    const admit: EngineRuntime['admit'] = async ({ name }) => {
      slots.push(name);
      return () => void slots.push('free');
    };
    const seen: string[][] = [];
    const runtime: Partial<EngineRuntime> = {
      admit,
      environment: () => {
        seen.push([...slots]);
        return { PATH };
      },
    };
    await start(await auto(), { runtime });
    const broken = { admit, findProgram: () => Promise.reject(new Error('a defect')) };
    await expect(start(await auto(), { runtime: broken })).rejects.toThrow('a defect');
    expect([seen, slots]).toEqual([[['codex']], ['codex', 'free', 'codex', 'free']]);
  });
});

// Runs a turn and returns what was noted about the login.
async function notes(run: RunRecord, path: readonly string[], control = new TurnControl()): Promise<unknown[]> {
  const noted: unknown[] = [];
  const noteLogin: EngineRuntime['noteLogin'] = ({ name }, model, isAccepted) =>
    void noted.push([name, model, isAccepted]);
  await start(run, { program: path, runtime: { noteLogin }, control });
  return noted;
}

describe('the login of an engine', () => {
  const refused = { type: 'turn.failed', error: { message: 'not logged in' } };
  test('is noted as accepted after a turn that reached an end', async () => {
    expect(await notes(await bench.queued({ execution_mode: 'auto', model: 'm' }), program())).toEqual([
      ['codex', 'm', true],
    ]);
    expect(await notes(await bench.queued(), program())).toEqual([['codex', undefined, true]]);
  });

  test('is noted as refused if the engine says so, also when it was to resume', async () => {
    expect(await notes(await auto(), program([codexSays.session(), refused]))).toEqual([['codex', undefined, false]]);
    expect(await notes(await answered(), program([refused]))).toEqual([['codex', undefined, false]]);
  });

  test('is not noted after any other end', async () => {
    expect(await notes(await auto(), program([codexSays.session()]))).toEqual([]);
    const control = new TurnControl();
    await control.cancel({ at: bench.clock.at, actor: null });
    expect(await notes(await auto(), program(ANSWERS, 'exec sleep 1000'), control)).toEqual([]);
  });
});
