// The small parts of a turn on their own: crash counts, parser counts, sessions, copies, and warnings about resuming.
import { mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ENGINES, findEngine } from '../../src/engines/registry.js';
import type { EngineRuntime, ResumeKnowledge } from '../../src/machine/engine-runtime.js';
import type { EngineSessionHandle } from '../../src/run/session-handle.js';
import type { RunRecord, RunSpec } from '../../src/store/store.js';
import { explainObstacle } from '../../src/turn/explain-obstacle.js';
import { explainResume, probeEngines } from '../../src/turn/explain-resume.js';
import { forkSource } from '../../src/turn/fork-source.js';
import { runError } from '../../src/run/run-error.js';
import { explainInterruption, hasCrashedTwice } from '../../src/turn/host-crashes.js';
import { summariseParser } from '../../src/turn/parser-summary.js';
import { isSessionThere } from '../../src/turn/session-there.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

const SESSION = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';
const root = realpathSync(mkdtempSync(join(tmpdir(), 'parley-parts-')));
afterAll(() => rmSync(root, { recursive: true }));

const handleIn = (changes: Partial<EngineSessionHandle> = {}): EngineSessionHandle => ({
  engine: 'codex',
  handle_type: 'session_id',
  handle_value: SESSION,
  cwd: root,
  home: null,
  created_at_attempt: 1,
  ...changes,
});

const specOf = (changes: Partial<RunSpec> = {}): RunSpec => ({
  engine: 'codex',
  execution_mode: 'interactive',
  prompt: 'Build it.',
  cwd: root,
  home: null,
  permission: 'workspace-write',
  runtime_options: {},
  labels: {},
  ...changes,
});

const runOf = (spec: Partial<RunSpec> = {}, rest: Partial<RunRecord> = {}): RunRecord =>
  ({ run_id: 'run_1', attempt_number: 1, spec: specOf(spec), ...rest }) as RunRecord;

describe('crashes of the host', () => {
  test('stop a run at the second one', () => {
    expect([0, 1, 2, 3].map((crashes) => hasCrashedTwice({ crashes }))).toEqual([false, false, true, true]);
  });

  test('are not mentioned after the first one', () => {
    expect(explainInterruption({ crashes: 1 })).toEqual(runError('ORCHESTRATOR_RESTART_INTERRUPTED.running'));
    expect(explainInterruption({ crashes: 0 }).message).toMatch(/parley retry.*recovery\.running="retry"/);
    expect(explainInterruption({ crashes: 0 }, 'queued').message).toMatch(/parley retry.*recovery\.queued="requeue"/);
  });

  test('are counted in the message and the details from the second one on', () => {
    const error = explainInterruption({ crashes: 3 }, 'queued');
    expect(error).toMatchObject({
      code: 'ORCHESTRATOR_RESTART_INTERRUPTED',
      details: { reason: 'HOST_CRASHED_TWICE', crashes: 3 },
    });
    expect(error.message).toMatch(/^Parley crashed 3 times .* is not started again by itself\./);
  });
});

describe('the counts of a parser', () => {
  const counts = { profile: 'codex_ndjson', units: 4, parsed: 3, fallbacks: 1, warnings: { UNKNOWN_TYPE: 1 } };

  test('have the share of parsed units, which is unknown if nothing was printed', () => {
    expect(summariseParser(counts)).toEqual({ ...counts, hit_rate: 0.75 });
    expect(summariseParser({ ...counts, units: 0, parsed: 0 }).hit_rate).toBeNull();
  });

  test('do not change with the parser afterwards', () => {
    const warnings: Record<string, number> = { UNKNOWN_TYPE: 1 };
    const summary = summariseParser({ ...counts, warnings });
    warnings['UNKNOWN_TYPE'] = 2;
    expect(summary.warnings).toEqual({ UNKNOWN_TYPE: 1 });
  });
});

const runtimeOf = (hasSession: EngineRuntime['hasSession']) => ({ runtime: { hasSession } as EngineRuntime });

test('a session that cannot be looked up counts as missing', async () => {
  expect(
    await isSessionThere(
      runtimeOf(async () => true),
      handleIn(),
    ),
  ).toBe(true);
  expect(
    await isSessionThere(
      runtimeOf(async () => false),
      handleIn(),
    ),
  ).toBe(false);
  const failing = runtimeOf(() => Promise.reject(new Error('the disk is gone')));
  expect(await isSessionThere(failing, handleIn())).toBe(false);
});

test('a fork starts from a copy of the session that its spec names', () => {
  expect(forkSource(specOf())).toBeNull();
  expect(forkSource(specOf({ fork_from: { run_id: 'run_0', session: SESSION, home: '/homes/0' } }))).toEqual({
    run_id: 'run_0',
    handle: handleIn({ home: '/homes/0' }),
  });
});

describe('an obstacle to a turn', () => {
  const codex = findEngine('codex');
  const explain = (handle: EngineSessionHandle | null, run = runOf(), hasProcess = false) =>
    explainObstacle({ engine: codex, run, handle, hasProcess });

  test('is a missing session, except in a first turn', async () => {
    expect(await explain(null)).toBeNull();
    expect(await explain(null, runOf({}, { attempt_number: 2 }))).toMatchObject({ code: 'SESSION_RESUME_FAILED' });
  });

  test('is a missing process, if the session was in the process', async () => {
    const handle = handleIn({ handle_type: 'process' });
    expect(await explain(handle)).toMatchObject({ code: 'INTERACTION_PROCESS_LOST' });
    expect(await explain(handle, runOf(), true)).toBeNull();
    expect(await explain(handleIn())).toBeNull();
  });

  test('is a session of another engine', async () => {
    expect(await explain(handleIn({ engine: 'gemini' }))).toMatchObject({
      code: 'SESSION_RESUME_FAILED',
      message: 'The session cannot be continued. The session belongs to gemini, not to codex.',
      details: { cause: { code: 'HANDLE_MISMATCH' } },
    });
  });

  test('is a folder that is missing or leads elsewhere', async () => {
    const missing = join(root, 'missing');
    expect(await explain(handleIn({ cwd: missing }), runOf({ cwd: missing }))).toMatchObject({
      code: 'SESSION_RESUME_FAILED',
      details: { cause: { code: 'WORKING_FOLDER_UNUSABLE' } },
    });
    const link = join(root, 'link');
    symlinkSync(root, link);
    const error = await explain(handleIn({ cwd: link }), runOf({ cwd: link }));
    expect(error?.message).toContain(`it now resolves to ${root}`);
  });

  test('is a home that is missing', async () => {
    const error = await explain(handleIn({ home: join(root, 'gone') }));
    expect(error).toMatchObject({
      code: 'SESSION_RESUME_FAILED',
      message: expect.stringContaining('Its home') as string,
    });
    expect(await explain(handleIn({ home: root }))).toBeNull();
  });
});

const never = (): never => {
  throw new Error('nothing may be probed');
};

describe('the warning that an engine may be unable to resume', () => {
  const codex = findEngine('codex');
  const bad: ResumeKnowledge = { resumes: false, problem: 'its help lacks resume' };
  const timers = new SimulatedTimers();
  const depsOf = (runtime: Partial<EngineRuntime>) => ({ runtime: runtime as EngineRuntime, timers });
  const textOf = async (runtime: Partial<EngineRuntime>, run = runOf()): Promise<string[]> =>
    (await explainResume(depsOf(runtime), codex, run)).map(({ data }) => (data as { message: string }).message);
  test('is given for interactive runs that need no process', async () => {
    const runtime = { knownResume: () => bad };
    const drafts = await explainResume(depsOf(runtime), codex, runOf());
    expect(drafts).toMatchObject([{ type: 'diagnostic.parser.warning', data: { code: 'RESUME_NOT_PROVED' } }]);
    expect(await textOf({ knownResume: never }, runOf({ execution_mode: 'auto' }))).toEqual([]);
    expect(await textOf({ knownResume: never }, runOf({ sticky: true }))).toEqual([]);
    expect(await textOf(runtime, runOf({ sticky: false }))).toHaveLength(1);
  });

  test('gives the reason, if there is one', async () => {
    expect(await textOf({ knownResume: () => bad })).toEqual([
      'codex has not shown that it can continue a conversation in another process: its help lacks resume',
    ]);
    expect((await textOf({ knownResume: () => ({ resumes: false, problem: null }) }))[0]).toMatch(
      /: the probe had no result$/,
    );
  });

  test('is not given for an engine that resumes or is missing, or if nothing can be probed', async () => {
    const good = { resumes: true, problem: null };
    expect(await textOf({ knownResume: () => good, probeResume: never })).toEqual([]);
    expect(await textOf({ knownResume: () => null, probeResume: async () => good })).toEqual([]);
    expect(await textOf({ knownResume: () => null, probeResume: async () => null })).toEqual([]);
    expect(await textOf({ knownResume: () => null })).toEqual([]);
    expect(await textOf({})).toEqual([]);
  });

  test('follows the probe if nothing is known, and leaves no timer', async () => {
    expect(await textOf({ probeResume: async () => bad })).toHaveLength(1);
    expect(timers.lengths()).toEqual([]);
    await expect(textOf({ probeResume: () => Promise.reject(new Error('no')) })).rejects.toThrow('no');
    expect(timers.lengths()).toEqual([]);
  });

  test('is given for a probe that takes longer than three seconds', async () => {
    const texts = textOf({ probeResume: () => new Promise(() => {}) });
    timers.advance(2999);
    expect(timers.lengths()).toEqual([3000]);
    timers.advance(1);
    expect((await texts)[0]).toContain('its probe has not ended within 3 s');
  });

  test('is prepared for by probing every engine', async () => {
    const probed: string[] = [];
    const probeResume = async ({ name }: { name: string }) => {
      await Promise.resolve();
      probed.push(name);
      return null;
    };
    await probeEngines(depsOf({ probeResume }));
    expect(probed).toEqual(ENGINES.map(({ name }) => name));
    await probeEngines(depsOf({}));
  });
});
