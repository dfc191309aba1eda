// Creation of runs on a real store: stored rows, refusals before anything is stored, and idempotency.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { actorKey } from '../../src/commands/actor-key.js';
import type { CreateRunRequest } from '../../src/commands/create-request.js';
import { buildRun, createRun, type Origin } from '../../src/commands/create-run.js';
import type { OrchestratorDeps, RunDefaults } from '../../src/journal/deps.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { refusal as requestRefusal } from '../../src/run/request-error.js';
import { RUN_FOLD_VERSION } from '../../src/run/run-fold.js';
import { DEFAULT_OPTIONS } from '../../src/run/default-options.js';
import { schemaChecks } from '../../src/schema-check/schema-checks.js';
import type { Actor, RunRecord } from '../../src/store/store.js';
import { CommandBench, race, refusal, T0 } from '../support/command-bench.js';

const ACTOR: Actor = { kind: 'token', name: 'ann' };
const DEFAULTS: RunDefaults = {
  mode: 'interactive',
  permission: 'read-only',
  model: { codex: 'gpt-5' },
  limits: { idle_timeout_sec: 60, turn_timeout_sec: 120, tool_timeout_sec: 90, silence_notice_sec: 30 },
};
const MISSING = requestRefusal('ENGINE_NOT_INSTALLED.path', { program: 'codex', install: 'npm install' });

let bench: CommandBench;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => bench.reset());
afterAll(() => bench.close());

function create(
  request: Partial<CreateRunRequest> = {},
  origin: Origin = {},
  deps: Partial<OrchestratorDeps> = {},
): Promise<RunRecord> {
  return createRun({ ...bench.deps, ...deps }, { engine: 'codex', prompt: 'Build it.', ...request }, origin);
}

// The refusal of a creation that stored nothing.
async function refuse(code: Parameters<typeof refusal>[1], ...args: Parameters<typeof create>): Promise<string> {
  const before = await bench.countRuns();
  const message = await refusal(create(...args), code);
  expect(await bench.countRuns()).toBe(before);
  return message;
}

const layout = (name: 'shared' | 'local', isHere = true): Pick<OrchestratorDeps, 'files'> => ({
  files: { ...bench.deps.files, layout: name, isHere: async () => isHere },
});

describe('a new run', () => {
  test('has defaults for everything that the request leaves out', async () => {
    const run = await create();
    const folder = runFolder(bench.data.path, run.run_id);
    expect(run).toMatchObject({
      request_id: run.run_id,
      status: 'queued',
      attempt_number: 1,
      created_at: T0,
      spec: {
        engine: 'codex',
        execution_mode: 'auto',
        prompt: 'Build it.',
        cwd: folder.workspace,
        home: folder.home,
        permission: 'workspace-write',
        runtime_options: DEFAULT_OPTIONS,
        labels: {},
      },
    });
    for (const name of ['model', 'output_schema', 'continue_from', 'fork_from', 'retry_of', 'sticky'] as const)
      expect(run.spec[name]).toBeUndefined();
    expect(await bench.store.loadRun(run.run_id)).toEqual(run);
    expect(await bench.store.loadHandle(run.request_id)).toBeNull();
  });

  test('keeps everything that the request sets, and its first event records it', async () => {
    const cwd = bench.folder('work');
    const run = await create(
      {
        execution_mode: 'interactive',
        cwd,
        model: 'gpt-5',
        permission: 'read-only',
        output_schema: { type: 'object' },
        runtime_options: { max_attempt: 3 },
        labels: { team: 'a' },
        request_id: 'whole',
      },
      { actor: ACTOR },
    );
    expect(run.request_id).toBe('whole');
    expect(run.spec).toMatchObject({
      execution_mode: 'interactive',
      cwd,
      model: 'gpt-5',
      permission: 'read-only',
      output_schema: { type: 'object' },
      runtime_options: { ...DEFAULT_OPTIONS, max_attempt: 3 },
      labels: { team: 'a' },
    });
    const events = await bench.eventsOf(run.run_id);
    const { home: _home, ...recorded } = run.spec;
    expect(events.map(({ event }) => event.type)).toEqual(['lifecycle.run.created']);
    expect(events[0]?.data).toEqual({
      ...recorded,
      fold_version: RUN_FOLD_VERSION,
      request_id: 'whole',
      actor: ACTOR,
    });
  });

  test('takes the turn limits of the operator unless the request sets its own', async () => {
    const run = await create({ runtime_options: { idle_timeout_sec: 5 } }, {}, { runDefaults: () => DEFAULTS });
    expect(run.spec.runtime_options).toEqual({ ...DEFAULT_OPTIONS, ...DEFAULTS.limits, idle_timeout_sec: 5 });
  });

  test('takes mode, permission and the model of its engine from the operator; its event records them', async () => {
    const deps = { runDefaults: () => DEFAULTS };
    const run = await create({}, {}, deps);
    const effective = { execution_mode: 'interactive', permission: 'read-only', model: 'gpt-5' };
    expect(run.spec).toMatchObject(effective);
    expect((await bench.eventsOf(run.run_id))[0]?.data).toMatchObject(effective);
    expect(await bench.store.loadRun(run.run_id)).toEqual(run);
    expect((await create({ engine: 'gemini' }, {}, deps)).spec.model).toBeUndefined();
  });

  test('keeps an explicit mode, permission and model, also if it is the built-in default', async () => {
    const explicit = { execution_mode: 'auto', permission: 'workspace-write', model: 'o3' } as const;
    expect((await create(explicit, {}, { runDefaults: () => DEFAULTS })).spec).toMatchObject(explicit);
  });

  test('is found by its request id after the defaults have changed', async () => {
    const run = await create({ request_id: 'same-request' });
    expect(await create({ request_id: 'same-request' }, {}, { runDefaults: () => DEFAULTS })).toEqual(run);
  });

  test('is checked with the default model of its engine', async () => {
    const models: (string | undefined)[] = [];
    const explainUnusable = (_engine: unknown, model: string | undefined): null => {
      models.push(model);
      return null;
    };
    const runtime = { ...bench.deps.runtime, explainUnusable };
    await create({}, {}, { runtime, runDefaults: () => DEFAULTS });
    expect(models).toEqual(['gpt-5']);
  });

  test('has its session timeout in its row', async () => {
    const built = await buildRun(
      bench.deps,
      { engine: 'codex', prompt: 'x', runtime_options: { session_timeout_sec: 7 } },
      {},
    );
    expect(built.session_timeout_sec).toBe(7);
  });

  test('is bound to this host only if it works in a folder of the caller', async () => {
    const request = { engine: 'codex', prompt: 'x' };
    expect((await buildRun(bench.deps, request, {})).local).toBe(false);
    expect((await buildRun(bench.deps, { ...request, cwd: bench.folder('work') }, {})).local).toBe(true);
  });

  test('that repeats an interrupted run names it and inherits its crash count', async () => {
    const request = { engine: 'codex', prompt: 'x' };
    const retry = await buildRun(bench.deps, request, { retryOf: 'run_old' });
    expect([retry.spec.retry_of, retry.crashes_of]).toEqual(['run_old', 'run_old']);
    expect((await buildRun(bench.deps, request, {})).crashes_of).toBeUndefined();
  });
});

describe('refused', () => {
  test.each<[Parameters<typeof refusal>[1], Partial<CreateRunRequest>]>([
    ['INVALID_ARGUMENT', { prompt: ' ' }],
    ['UNKNOWN_ENGINE', { engine: 'copilot' }],
    ['UNKNOWN_ENGINE', { engine: 'copilot', force: true }],
    ['INVALID_ARGUMENT', { runtime_options: { max_attempts: 3 } }],
    ['INVALID_ARGUMENT', { output_schema: { type: 'objekt' } }],
    ['INVALID_ARGUMENT', { cwd: 'relative' }],
    ['INVALID_ARGUMENT', { cwd: '/no/such/folder' }],
  ])('%s for %j', async (code, request) => {
    await refuse(code, request);
  });

  test('a folder outside the roots of the caller', async () => {
    const cwd = bench.folder('work');
    await refuse('PATH_NOT_ALLOWED', { cwd }, { roots: [bench.folder('other')] });
    expect((await create({ cwd }, { roots: [cwd] })).spec.cwd).toBe(cwd);
  });

  test('a folder that contains the data directory, unless the permission is full', async () => {
    await refuse('PATH_NOT_ALLOWED', { cwd: bench.root });
    expect((await create({ cwd: bench.root, permission: 'full' })).spec.cwd).toBe(bench.root);
  });

  test('a schema that cannot be compiled, with the reason', async () => {
    expect(await refuse('INVALID_ARGUMENT', { output_schema: { type: 'objekt' } })).toMatch(
      /^output_schema cannot be used: ./,
    );
  });

  test('the check of a schema counts for its actor', async () => {
    const explain = vi.spyOn(schemaChecks, 'explainSchema');
    await create({ output_schema: { type: 'string' } }, { actor: ACTOR });
    await create({ output_schema: { type: 'string' } });
    expect(explain.mock.calls.map(([, caller]) => caller)).toEqual([actorKey(ACTOR), undefined]);
    explain.mockRestore();
  });

  test('an engine with a known obstacle, unless forced', async () => {
    bench.stub.unusable = MISSING;
    await refuse('ENGINE_NOT_INSTALLED', {});
    await refuse('ENGINE_NOT_INSTALLED', { force: false });
    expect((await create({ force: true })).status).toBe('queued');
  });

  test('on hosts that share a store: an obstacle matters if the run needs a folder of this host', async () => {
    bench.stub.unusable = MISSING;
    const peers = { ...bench.deps.peers, hasEngine: async () => true };
    const cwd = bench.folder('work');
    const beside = await bench.queued({ force: true });
    await refuse('ENGINE_NOT_INSTALLED', { cwd }, {}, { peers, ...layout('local') });
    await create({}, {}, { peers, ...layout('local') });
    await create({ cwd }, {}, { peers, ...layout('shared') });
    await create({ cwd: beside.spec.cwd }, { beside }, { peers, ...layout('local', false) });
  });
});

describe('the queue limit', () => {
  test('refuses a run over the limit, and accepts one again after another started', async () => {
    const own = await CommandBench.open();
    try {
      const deps = { ...own.deps, queueLimit: () => 2 };
      const request = { engine: 'codex', prompt: 'x' };
      const first = await createRun(deps, { ...request, request_id: 'first' }, {});
      await createRun(deps, request, {});
      expect(await refusal(createRun(deps, request, {}), 'QUEUE_FULL')).toMatch(/^2 runs are already queued/);
      // A repeated request creates nothing, so the limit does not apply to it.
      expect(await createRun(deps, { ...request, request_id: 'first' }, {})).toEqual(first);
      await own.apply(first, { event: 'turn.started' });
      const { results, errors } = await race(...[1, 2, 3].map(() => createRun(deps, request, {})));
      expect([results.length, errors.map((error) => (error as { code: string }).code)]).toEqual([
        1,
        ['QUEUE_FULL', 'QUEUE_FULL'],
      ]);
    } finally {
      await own.close();
    }
  });
});

describe('a request id', () => {
  test('returns the same run for the same request, whatever became of the run and of the engine', async () => {
    const cwd = bench.folder('short-lived');
    const run = await create({ request_id: 'same', cwd });
    rmSync(cwd, { recursive: true });
    bench.stub.unusable = MISSING;
    const again = await create({ request_id: 'same', cwd }, { actor: ACTOR, roots: [] });
    expect(again).toEqual(run);
    const ended = await bench.end(run);
    expect(await create({ request_id: 'same', cwd, force: true })).toEqual(ended);
  });

  test.each<Partial<CreateRunRequest>>([
    { prompt: 'Other.' },
    { engine: 'gemini' },
    { labels: { a: 'b' } },
    { execution_mode: 'auto' },
    { runtime_options: {} },
  ])('with another body (%j) is a conflict', async (change) => {
    const run = await create({ request_id: `conflict ${JSON.stringify(change)}` });
    const message = await refuse('REQUEST_ID_CONFLICT', { request_id: run.request_id, ...change });
    expect(message).toContain(run.run_id);
  });

  test('of a plain request conflicts with the same request as a continuation or a fork', async () => {
    const source = await bench.end(await bench.running(), 'succeeded', { session: true });
    const handle = await bench.store.loadHandle(source.request_id);
    if (!handle) throw new Error('no handle');
    const session = { run_id: source.run_id, handle };
    await create({ request_id: 'plain' });
    await refuse('REQUEST_ID_CONFLICT', { request_id: 'plain' }, { continuation: session });
    await refuse('REQUEST_ID_CONFLICT', { request_id: 'plain' }, { fork: session });
    const fork = await create({ request_id: 'fork' }, { fork: session });
    expect(await create({ request_id: 'fork' }, { fork: session })).toEqual(fork);
    await refuse('REQUEST_ID_CONFLICT', { request_id: 'fork' }, { continuation: session });
  });

  test('ignores the order of members', async () => {
    const run = await create({ request_id: 'ordered', labels: { a: '1', b: '2' } });
    expect(await create({ request_id: 'ordered', labels: { b: '2', a: '1' } })).toEqual(run);
  });

  test('at the same time creates one run; with another body all but one conflict', async () => {
    const same = await race(...[1, 2, 3].map(() => create({ request_id: 'at once' })));
    expect([new Set(same.results.map(({ run_id: id }) => id)).size, same.results.length]).toEqual([1, 3]);
    const different = await race(
      ...['a', 'b', 'c'].map((prompt) => create({ request_id: 'at once, different', prompt })),
    );
    expect([different.results.length, different.errors.map((error) => (error as { code: string }).code)]).toEqual([
      1,
      ['REQUEST_ID_CONFLICT', 'REQUEST_ID_CONFLICT'],
    ]);
  });
});

async function stickyOf(
  request: Partial<CreateRunRequest>,
  setting: Pick<OrchestratorDeps, 'mayNeedProcess'> = { mayNeedProcess: true },
): Promise<boolean | undefined> {
  const run = await create({ execution_mode: 'interactive', ...request }, {}, setting);
  const [created] = await bench.eventsOf(run.run_id);
  const profile = (created?.data as { interactive_profile?: { kind: string } } | undefined)?.interactive_profile;
  expect(profile?.kind).toBe({ true: 'sticky_process', false: 'resumable' }[String(run.spec.sticky)]);
  return run.spec.sticky;
}

describe('how the run will wait (sessions.sticky)', () => {
  const RESUMES = { resumes: true, problem: null };
  const CANNOT = { resumes: false, problem: 'no' };

  test('is recorded for an interactive run of a probed engine', async () => {
    bench.stub.resume = RESUMES;
    expect(await stickyOf({})).toBe(false);
    expect(await stickyOf({ engine: 'codex-app-server' })).toBe(false);
    bench.stub.resume = CANNOT;
    expect(await stickyOf({ engine: 'codex-app-server' })).toBe(true);
    expect(await stickyOf({ engine: 'codex' })).toBeUndefined();
    expect(bench.stub.probed).toEqual([]);
  });

  test('is not recorded for auto runs, and not if the setting is off', async () => {
    bench.stub.resume = RESUMES;
    expect(await stickyOf({ execution_mode: 'auto' })).toBeUndefined();
    expect(await stickyOf({}, { mayNeedProcess: false })).toBeUndefined();
    bench.stub.resume = CANNOT;
    expect(await stickyOf({ engine: 'codex-app-server' }, { mayNeedProcess: false })).toBeUndefined();
  });

  test('is unknown for an engine that was not probed: it is probed in the background, and may fail', async () => {
    expect(await stickyOf({})).toBeUndefined();
    expect(await stickyOf({}, { mayNeedProcess: false })).toBeUndefined();
    expect(await stickyOf({ execution_mode: 'auto' })).toBeUndefined();
    expect(bench.stub.probed).toEqual(['codex', 'codex']);
  });

  test('is unknown for a runtime that cannot probe', async () => {
    const { knownResume: _known, probeResume: _probe, ...runtime } = bench.deps.runtime;
    const run = await create({ execution_mode: 'interactive' }, {}, { mayNeedProcess: true, runtime });
    expect(run.spec.sticky).toBeUndefined();
  });
});

describe('a run that builds on another one', () => {
  test('gets its home in the data directory that has the files, if hosts share the store', async () => {
    const home = join('/other-host/data/runs/run_x/home');
    const handle = {
      engine: 'codex',
      handle_type: 'session_id',
      handle_value: 's',
      cwd: '/w',
      home,
      created_at_attempt: 1,
    } as const;
    const request = { engine: 'codex', prompt: 'x' };
    const fork = { run_id: 'run_x', handle };
    const shared = await buildRun({ ...bench.deps, ...layout('shared') }, request, { fork });
    expect(shared.spec.home).toBe(runFolder('/other-host/data', shared.run_id).home);
    const single = await buildRun(bench.deps, request, { fork });
    expect(single.spec.home).toBe(runFolder(bench.data.path, single.run_id).home);
    const without = await buildRun({ ...bench.deps, ...layout('shared') }, request, {
      fork: { ...fork, handle: { ...handle, home: null } },
    });
    expect(without.spec).toMatchObject({
      home: runFolder(bench.data.path, without.run_id).home,
      fork_from: { run_id: 'run_x', session: 's', home: '' },
    });
  });

  test('checks the folder of a retried run only on the host that has it', async () => {
    const source = await bench.queued();
    const beside = { ...source, spec: { ...source.spec, cwd: '/elsewhere/work', home: '/elsewhere/data/runs/r/home' } };
    const request = { engine: 'codex', prompt: 'x', cwd: '/elsewhere/work' };
    const away = await buildRun({ ...bench.deps, ...layout('local', false) }, request, { beside });
    expect([away.spec.cwd, away.beside, away.spec.home]).toEqual([
      '/elsewhere/work',
      source.run_id,
      runFolder('/elsewhere/data', away.run_id).home,
    ]);
    await refusal(buildRun({ ...bench.deps, ...layout('local', true) }, request, { beside }), 'INVALID_ARGUMENT');
  });
});
