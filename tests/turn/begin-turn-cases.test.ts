// The start of a turn, and the ends of turns without an engine, on a real store.
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { findEngine } from '../../src/engines/registry.js';
import { runFolder } from '../../src/journal/run-folder.js';
import type { EngineRuntime, TurnNeeds } from '../../src/machine/engine-runtime.js';
import { draft } from '../../src/rasp/draft.js';
import type { EngineSessionHandle } from '../../src/run/session-handle.js';
import { refuseTurn } from '../../src/run/turn-refused-error.js';
import type { RunRecord, RunSpec } from '../../src/store/store.js';
import {
  beginTurn,
  endCrashed,
  failBeforeStart,
  failInternally,
  finishConversation,
  NotBegunError,
} from '../../src/turn/begin-turn.js';
import { prepareTurn } from '../../src/turn/prepare-turn.js';
import type { TurnContext } from '../../src/turn/turn-context.js';
import { writeResult } from '../../src/turn/write-result.js';
import { alterStore } from '../support/altered-store.js';
import { CommandBench, type Waiting } from '../support/command-bench.js';

const SESSION = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';
const ERROR = { code: 'ENGINE_NOT_FOUND', message: 'codex not found' } as const;

let bench: CommandBench;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => bench.reset());
afterAll(() => bench.close());

const load = async (runId: string): Promise<RunRecord> => (await bench.store.loadRun(runId)) as RunRecord;
const resultOf = (runId: string): string => join(runFolder(bench.deps.dataDir, runId).path, 'result.json');

describe('the start of a turn', () => {
  test('gives the run a new owner and stores the events of the start first', async () => {
    const queued = await bench.queued();
    const before = [draft('lifecycle.turn.started', { argv: ['codex'], resumed: false, cwd: '/work' })];
    const outcome = await beginTurn(bench.deps, queued, before);
    expect(outcome).toMatchObject({ applied: true, run: { status: 'running', epoch: queued.epoch + 1 } });
    expect((await bench.eventsOf(queued.run_id)).slice(-2).map(({ event }) => event.type)).toEqual([
      'lifecycle.turn.started',
      'lifecycle.state.changed',
    ]);
    expect(await beginTurn(bench.deps, queued)).toMatchObject({ applied: false });
  });

  test('that the store does not accept can be tried again', async () => {
    const queued = await bench.queued();
    const cause = new Error('the disk is full');
    const store = alterStore(bench.store, { append: () => Promise.reject(cause) });
    const error: unknown = await beginTurn({ ...bench.deps, store }, queued).catch((problem: unknown) => problem);
    expect(error).toBeInstanceOf(NotBegunError);
    expect((error as Error).cause).toBe(cause);
    expect((await load(queued.run_id)).status).toBe('queued');
  });
});

describe('a run that crashed its host twice', () => {
  test('fails before it starts', async () => {
    const queued = { ...(await bench.queued()), crashes: 2 };
    const ended = await endCrashed(bench.deps, queued);
    expect(ended).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('about to start') as string, details: { crashes: 2 } },
    });
    expect((await load(queued.run_id)).status).toBe('failed');
  });

  test('is returned as it is stored if somebody ended it first', async () => {
    const queued = await bench.queued();
    const canceled = await bench.end(queued, 'canceled');
    expect(await endCrashed(bench.deps, queued)).toEqual(canceled);
  });
});

async function answered(): Promise<Waiting> {
  const { run, question } = await bench.waiting('conversation');
  return { run: await bench.apply(run, { event: 'interaction.reply.accepted' }), question };
}

describe('a turn without an engine', () => {
  test('fails with its error', async () => {
    const queued = await bench.queued();
    const failed = await failBeforeStart(bench.deps, queued, ERROR);
    expect(failed).toMatchObject({ status: 'failed', error: ERROR });
    expect(await load(queued.run_id)).toMatchObject({ status: 'failed', error: ERROR });
  });

  test('leaves a run that somebody canceled first as it is', async () => {
    const queued = await bench.queued();
    const canceled = await bench.end(queued, 'canceled');
    expect(await failBeforeStart(bench.deps, queued, ERROR)).toEqual(canceled);
    expect(await finishConversation(bench.deps, queued, { question: { prompt: 'x' } } as never)).toEqual(canceled);
  });

  test('finishes a conversation with its last message as the result', async () => {
    const { run, question } = await answered();
    const done = await finishConversation(bench.deps, run, question);
    expect(done).toMatchObject({ status: 'succeeded', result: 'The turn ended.' });
    expect(readFileSync(resultOf(run.run_id), 'utf8')).toBe('"The turn ended."\n');
    const types = (await bench.eventsOf(run.run_id)).map(({ event }) => event.type);
    expect(types.at(-2)).toBe('artifact.result.written');
  });

  test('finishes a conversation without a readable message with no result', async () => {
    const { run, question } = await answered();
    const done = await finishConversation(bench.deps, run, { ...question, question: {} });
    expect(done).toMatchObject({ status: 'succeeded', result: null });
    expect(readFileSync(resultOf(run.run_id), 'utf8')).toBe('null\n');
  });
});

const peers = (hasPeers: boolean) => ({ ...bench.deps, ownership: { ...bench.deps.ownership, hasPeers } });

describe('a turn that could not be run', () => {
  test('fails the run, whether it is queued or running', async () => {
    for (const run of [await bench.queued(), await bench.running()]) {
      await failInternally(peers(false), run.run_id, new Error('no more processes'));
      expect((await load(run.run_id)).error).toEqual({
        code: 'INTERNAL',
        message: 'The turn could not be run: no more processes',
        values: { reason: 'no more processes' },
      });
    }
  });

  test('is left to other hosts only while it is queued', async () => {
    const [queued, running] = [await bench.queued(), await bench.running()];
    for (const { run_id: runId } of [queued, running]) await failInternally(peers(true), runId, 'no');
    expect(await load(queued.run_id)).toEqual(queued);
    expect((await load(running.run_id)).error?.message).toBe('The turn could not be run: no');
  });

  test('does not change runs that wait, have ended or are unknown', async () => {
    const { run } = await bench.waiting();
    const ended = await bench.end(await bench.running());
    for (const id of [run.run_id, ended.run_id, 'run_unknown']) await failInternally(peers(false), id, 'no');
    expect(await load(run.run_id)).toEqual(run);
    expect(await load(ended.run_id)).toEqual(ended);
  });

  test('because the disk is full has the code for it and the way out', async () => {
    const run = await bench.running();
    const full = Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' });
    await failInternally(peers(false), run.run_id, full);
    const { error } = await load(run.run_id);
    expect(error?.code).toBe('DISK_FULL');
    expect(error?.message).toContain(`(ENOSPC: no space left). Free some space, then: parley retry ${run.run_id}`);
  });

  test('has a short message without keys', async () => {
    const run = await bench.running();
    await failInternally(peers(false), run.run_id, new Error(`sk-${'a1B2'.repeat(12)} ${'x'.repeat(900)}`));
    const message = (await load(run.run_id)).error?.message ?? '';
    expect(message).not.toContain('a1B2a1B2');
    expect(message).not.toBe('');
    const long = await bench.running();
    await failInternally(peers(false), long.run_id, 'x'.repeat(900));
    expect(String((await load(long.run_id)).error?.values?.['reason']).replace('…', '')).toHaveLength(500);
  });

  test('is reported if the store refuses the failure', async () => {
    const run = await bench.running();
    const conflict = { committed: false, reason: 'epoch' } as const;
    const store = alterStore(bench.store, { append: async () => conflict as never });
    const deps = { ...peers(false), store };
    await expect(failInternally(deps, run.run_id, 'no')).rejects.toThrow('changed by another writer (epoch)');
  });
});

describe('the result file', () => {
  test('is recorded with its size and hash', async () => {
    const written = await writeResult({ dataDir: bench.deps.dataDir, runId: 'run_result', result: { a: 1 } });
    const text = readFileSync(resultOf('run_result'), 'utf8');
    expect(text).toBe('{\n  "a": 1\n}\n');
    expect(written).toMatchObject({
      type: 'artifact.result.written',
      data: { path: 'result.json', bytes: text.length, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string },
    });
  });

  test('is not written if the check refuses it', async () => {
    const expired = new Error('the lease has expired');
    const check = () => {
      throw expired;
    };
    const file = { dataDir: bench.deps.dataDir, runId: 'run_refused', result: 1, check };
    await expect(writeResult(file)).rejects.toThrow('the lease has expired');
    expect(existsSync(resultOf('run_refused'))).toBe(false);
  });
});

const handleOf = ({ spec: { cwd, home } }: RunRecord): EngineSessionHandle => ({
  engine: 'codex',
  handle_type: 'session_id',
  handle_value: SESSION,
  cwd,
  home,
  created_at_attempt: 1,
});

const failing = (error: Error) => ({ environment: () => Promise.reject(error) });
const needs: TurnNeeds[] = [];
const environment: EngineRuntime['environment'] = (_engine, _run, turn) => {
  needs.push(turn);
  return { A: '1' };
};

describe('the preparation of a turn', () => {
  const codex = findEngine('codex');

  function contextOf(
    run: RunRecord,
    runtime: Partial<EngineRuntime> = {},
    { handle = null, ...spec }: Partial<RunSpec> & { readonly handle?: EngineSessionHandle | null } = {},
  ): TurnContext {
    return {
      deps: { ...bench.deps, runtime: { ...bench.deps.runtime, environment, ...runtime } },
      engine: codex,
      handle,
      writer: { run: { ...run, spec: { ...run.spec, ...spec } } },
    } as unknown as TurnContext;
  }

  test('makes the folders of a first turn and returns its environment', async () => {
    const run = await bench.running();
    const { workspace, home, attempt } = runFolder(bench.deps.dataDir, run.run_id);
    needs.length = 0;
    const prepared = await prepareTurn(contextOf(run), ['ask']);
    expect(prepared).toMatchObject({ attempt: { path: attempt(1).path }, env: { A: '1' } });
    expect([workspace, home, attempt(1).path].map((path) => existsSync(path))).toEqual([true, true, true]);
    expect(needs).toEqual([{ ask: ['ask'], resumed: null }]);
  });

  test('makes no workspace for a resumed turn and no home for a run without one', async () => {
    const run = await bench.running();
    const { workspace, home } = runFolder(bench.deps.dataDir, run.run_id);
    needs.length = 0;
    const handle = handleOf(run);
    expect(await prepareTurn(contextOf(run, {}, { handle, home: null }), null)).toHaveProperty('env');
    expect([existsSync(workspace), existsSync(home)]).toEqual([false, false]);
    expect(needs).toEqual([{ ask: null, resumed: handle }]);
  });

  test('does not make a folder that belongs to somebody else', async () => {
    const run = await bench.running();
    const cwd = join(bench.root, 'missing');
    expect(await prepareTurn(contextOf(run, {}, { cwd }), null)).toMatchObject({
      refused: {
        code: 'WORKING_FOLDER_UNUSABLE',
        message: expect.stringContaining(`cannot work in ${cwd}: `) as string,
      },
    });
    expect(existsSync(cwd)).toBe(false);
  });

  test('refuses a folder that leads elsewhere', async () => {
    const run = await bench.running();
    const [real, cwd] = [join(bench.root, 'real'), join(bench.root, 'linked')];
    mkdirSync(real);
    symlinkSync(real, cwd);
    const { refused } = (await prepareTurn(contextOf(run, {}, { cwd }), null)) as { refused: { message: string } };
    expect(refused.message).toBe(
      `The agent cannot work in ${cwd}: it now resolves to ${real}, which is another folder.`,
    );
  });

  test('copies the session of a fork into its own home, in the first turn only', async () => {
    const run = await bench.running();
    const fork_from = { run_id: 'run_0', session: SESSION, home: '/homes/0' };
    const copies: unknown[] = [];
    const copySession: EngineRuntime['copySession'] = async (handle, home) => {
      copies.push([handle.handle_value, handle.home, home]);
      return copies.length === 1;
    };
    expect(await prepareTurn(contextOf(run, { copySession }, { fork_from }), null)).toHaveProperty('env');
    expect(copies).toEqual([[SESSION, '/homes/0', run.spec.home]]);
    expect(await prepareTurn(contextOf(run, { copySession }, { fork_from }), null)).toMatchObject({
      refused: {
        code: 'SESSION_RESUME_FAILED',
        message: expect.stringContaining('run run_0 no longer exists') as string,
      },
    });
    const context = contextOf(run, { copySession }, { fork_from, handle: handleOf(run) });
    expect(await prepareTurn(context, null)).toHaveProperty('env');
    expect(copies).toHaveLength(2);
  });

  test('cannot copy a session without a copier or a home', async () => {
    const run = await bench.running();
    const fork_from = { run_id: 'run_0', session: SESSION, home: '/homes/0' };
    await expect(prepareTurn(contextOf(run, {}, { fork_from }), null)).rejects.toThrow('can copy a session');
    const runtime = { copySession: async () => true };
    await expect(prepareTurn(contextOf(run, runtime, { fork_from, home: null }), null)).rejects.toThrow(
      'has its own home',
    );
  });

  test('refuses a turn with the reason of the runtime', async () => {
    const run = await bench.running();
    const refused = refuseTurn('ENGINE_SETTINGS_INVALID.form', { file: 'config.toml', form: 'TOML' });
    expect(await prepareTurn(contextOf(run, failing(refused)), null)).toEqual({
      refused: refused.error,
    });
  });

  test('refuses a resumed turn if the machine refuses something, and throws every other error', async () => {
    const run = await bench.running();
    const system = Object.assign(new Error('EACCES: denied'), { syscall: 'open' });
    const handle = handleOf(run);
    expect(await prepareTurn(contextOf(run, failing(system), { handle }), null)).toEqual({
      refused: {
        code: 'INTERNAL',
        message: 'The turn could not be prepared: EACCES: denied',
        values: { reason: 'EACCES: denied' },
      },
    });
    await expect(prepareTurn(contextOf(run, failing(system)), null)).rejects.toBe(system);
    const defect = new Error('a defect');
    await expect(prepareTurn(contextOf(run, failing(defect), { handle }), null)).rejects.toBe(defect);
    const odd = { syscall: 'open' } as never;
    await expect(prepareTurn(contextOf(run, failing(odd), { handle }), null)).rejects.toBe(odd);
  });
});
