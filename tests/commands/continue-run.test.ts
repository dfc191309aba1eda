// Runs that continue or retry an ended run, on a real store: which session, folder and prompt they get.
import { renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { continueRun, retryRun } from '../../src/commands/continue-run.js';
import { createRun } from '../../src/commands/create-run.js';
import { decide, replyToRun, type Reply } from '../../src/commands/reply.js';
import { runFolder } from '../../src/journal/run-folder.js';
import type { OrchestratorDeps } from '../../src/journal/deps.js';
import type { Json } from '../../src/kernel/json.js';
import { NOBODY_ANSWERED } from '../../src/run/turn-prompt.js';
import type { Actor, RunRecord } from '../../src/store/store.js';
import { refusal as requestRefusal } from '../../src/run/request-error.js';
import { CommandBench, race, refusal, type QuestionName } from '../support/command-bench.js';

const ACTOR: Actor = { kind: 'token', name: 'ann' };

let bench: CommandBench;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => bench.reset());
afterAll(() => bench.close());

const continueWith = (runId: string, prompt = 'And now?', requestId?: string): Promise<RunRecord> =>
  continueRun(bench.deps, runId, {
    request: { prompt, ...(requestId === undefined ? {} : { request_id: requestId }) },
    actor: ACTOR,
  });
const retry = (runId: string): Promise<RunRecord> => retryRun(bench.deps, runId, { request: {}, actor: ACTOR });
const withSession = async (): Promise<RunRecord> => bench.end(await bench.running(), 'failed', { session: true });

// A run whose session was in its process only.
async function sticky(): Promise<RunRecord> {
  const run = await bench.running();
  const before = [bench.confirmSession(run, { sticky: true })];
  return bench.apply(run, { event: 'turn.succeeded', result: 'ok', before });
}

const runDefaults: OrchestratorDeps['runDefaults'] = () => ({
  mode: 'interactive',
  permission: 'full',
  model: { codex: 'gpt-5' },
  limits: { idle_timeout_sec: 1, turn_timeout_sec: 1, tool_timeout_sec: 1, silence_notice_sec: 1 },
});

describe('continue', () => {
  test('creates a run with the new prompt on the stored session, in its home and folder', async () => {
    const source = await bench.end(
      await bench.running({
        model: 'gpt-5',
        permission: 'read-only',
        output_schema: { type: 'string' },
        labels: { team: 'a' },
        runtime_options: { max_attempt: 3 },
        cwd: bench.folder('work'),
      }),
      'succeeded',
      { session: true },
    );
    const run = await continueWith(source.run_id);
    expect(run.spec).toEqual({ ...source.spec, prompt: 'And now?', continue_from: source.run_id });
    expect([run.status, run.request_id]).toEqual(['queued', run.run_id]);
    const handle = await bench.store.loadHandle(source.request_id);
    expect(handle).not.toBeNull();
    expect(await bench.store.loadHandle(run.request_id)).toEqual(handle);
    expect((await bench.eventsOf(run.run_id))[0]?.data).toMatchObject({
      actor: ACTOR,
      continue_from: source.run_id,
      session: { session_id: handle?.handle_value, handle_type: 'session_id' },
    });
  });

  test.each(['succeeded', 'failed', 'canceled'] as const)('accepts a %s run', async (status) => {
    const source = await bench.end(await bench.running(), status, { session: true });
    expect((await continueWith(source.run_id)).spec.continue_from).toBe(source.run_id);
  });

  test('is refused without a stored session, and for a session that was in a process', async () => {
    const none = await bench.end(await bench.running());
    expect(await refusal(continueWith(none.run_id), 'NO_SESSION')).toContain(`parley retry ${none.run_id}`);
    await refusal(continueWith((await sticky()).run_id), 'NO_SESSION');
  });

  test('is refused for a run that has not ended, and for an unknown run', async () => {
    const { run } = await bench.waiting();
    for (const { run_id: runId, status } of [await bench.queued(), await bench.running(), run]) {
      expect(await refusal(continueWith(runId), 'RUN_NOT_ENDED')).toContain(`is ${status}`);
      expect(await refusal(retry(runId), 'RUN_NOT_ENDED')).toContain(`is ${status}`);
    }
    await refusal(continueWith('run_unknown'), 'RUN_NOT_FOUND');
    await refusal(retry('run_unknown'), 'RUN_NOT_FOUND');
  });

  test('lets one run at a time use the session', async () => {
    const { run_id: runId } = await withSession();
    const { results, errors } = await race(continueWith(runId, 'a'), continueWith(runId, 'b'));
    expect([results.length, errors]).toMatchObject([1, [{ code: 'SESSION_IN_USE' }]]);
    const [first] = results as [RunRecord];
    expect((errors[0] as Error).message).toBe(
      `Run ${first.run_id} is using the session of run ${runId}. Wait until it has ended, or cancel it.`,
    );
    await refusal(retry(runId), 'SESSION_IN_USE');
    await bench.end(first, 'canceled');
    expect((await continueWith(runId, 'c')).status).toBe('queued');
  });

  test('with a request id returns the same run for the same prompt and source only', async () => {
    const { run_id: runId } = await withSession();
    const run = await continueWith(runId, 'a', 'continue-key');
    expect(await continueWith(runId, 'a', 'continue-key')).toEqual(run);
    await refusal(continueWith(runId, 'b', 'continue-key'), 'REQUEST_ID_CONFLICT');
    await refusal(continueWith((await withSession()).run_id, 'a', 'continue-key'), 'REQUEST_ID_CONFLICT');
  });
});

async function answered(name: QuestionName, input: Partial<Reply>): Promise<RunRecord> {
  const { run, question } = await bench.waiting(name);
  const reply = { interaction_id: question.interaction_id, ...input };
  return bench.end(await replyToRun(bench.deps, run.run_id, { reply, actor: null }), 'failed');
}

describe('retry', () => {
  test.each<[QuestionName, Json, string]>([
    ['text', 'Call it parley.', 'Call it parley.'],
    ['text', ' ', '(the answer was left empty)'],
    ['choice', 80, '80'],
    ['form', { name: 'ann' }, '{"name":"ann"}'],
    ['conversation', 'Now test it.', 'Now test it.'],
  ])('after a %s question repeats the answer %j in the stored session', async (name, response, prompt) => {
    const source = await answered(name, { response });
    const { spec } = await retry(source.run_id);
    expect(spec).toEqual({ ...source.spec, prompt, continue_from: source.run_id });
  });

  test.each(['approve', 'approve_for_session', 'decline'])('never carries the decision %s over', async (decision) => {
    const source = await answered('approval', { response: { decision } });
    const { spec } = await retry(source.run_id);
    expect([spec.prompt, spec.continue_from]).toEqual([source.spec.prompt, source.run_id]);
  });

  test('after the end of a conversation starts with the first prompt', async () => {
    const source = await answered('conversation', { finish: true });
    expect((await retry(source.run_id)).spec.prompt).toBe(source.spec.prompt);
  });

  test('repeats a decision of the policy like an answer', async () => {
    const { question } = await bench.waiting('text', { runtime_options: { interactive_require_user_reply: false } });
    const decided = await decide(bench.deps, question);
    const { run_id: runId } = await bench.end(decided as RunRecord, 'failed');
    expect((await retry(runId)).spec.prompt).toBe(NOBODY_ANSWERED);
  });

  test('of a run that was canceled while it waited starts with the first prompt', async () => {
    const { run } = await bench.waiting();
    await bench.apply(run, { event: 'run.canceled', actor: ACTOR });
    const { spec } = await retry(run.run_id);
    expect([spec.prompt, spec.continue_from]).toEqual([run.spec.prompt, run.run_id]);
  });

  test('without a session starts from the beginning, in a new workspace of its own', async () => {
    const source = await bench.end(await bench.running({ labels: { team: 'a' } }), 'failed');
    const run = await retry(source.run_id);
    const folder = runFolder(bench.data.path, run.run_id);
    expect(run.spec).toEqual({ ...source.spec, cwd: folder.workspace, home: folder.home });
    expect(await bench.store.loadHandle(run.request_id)).toBeNull();
    expect((await bench.eventsOf(run.run_id))[0]?.data).toMatchObject({ actor: ACTOR });
  });

  test('keeps the values of the first run when the defaults of the settings have changed', async () => {
    const deps = { ...bench.deps, runDefaults };
    const cwd = bench.folder('project-of-defaults');
    const sources = [
      await bench.end(await bench.running(), 'failed'),
      await bench.end(await bench.running({ cwd }), 'failed'),
      await withSession(),
    ];
    for (const { run_id: runId, spec } of sources) {
      const kept = {
        execution_mode: spec.execution_mode,
        permission: spec.permission,
        runtime_options: spec.runtime_options,
      };
      const retried = await retryRun(deps, runId, { request: {}, actor: ACTOR });
      expect(retried.spec).toMatchObject(kept);
      expect(retried.spec.model).toBeUndefined();
    }
    const { run_id: continued } = await withSession();
    const run = await continueRun(deps, continued, { request: { prompt: 'And now?' }, actor: ACTOR });
    expect([run.spec.permission, run.spec.model]).toEqual(['workspace-write', undefined]);
  });

  test('of a session that was in a process starts from the beginning', async () => {
    const source = await sticky();
    const { spec } = await retry(source.run_id);
    expect([spec.prompt, spec.continue_from]).toEqual([source.spec.prompt, undefined]);
  });

  test('without a session works in the folder of the first run, unless it now leads elsewhere', async () => {
    const cwd = bench.folder('project');
    const source = await bench.end(await bench.running({ cwd }), 'failed');
    expect((await retry(source.run_id)).spec).toMatchObject({ cwd, prompt: source.spec.prompt });
    renameSync(cwd, join(bench.root, 'moved'));
    await refusal(retry(source.run_id), 'INVALID_ARGUMENT');
    symlinkSync(join(bench.root, 'moved'), cwd);
    expect(await refusal(retry(source.run_id), 'INVALID_ARGUMENT')).toContain('another folder');
  });

  test('of a fork without a session of its own starts from the copied session again', async () => {
    const origin = await bench.end(await bench.running(), 'succeeded', { session: true });
    const handle = await bench.store.loadHandle(origin.request_id);
    if (!handle) throw new Error('no handle');
    const request = { engine: 'codex', prompt: 'Other way.' };
    const fork = await createRun(bench.deps, request, { fork: { run_id: origin.run_id, handle } });
    const failed = await bench.end(fork, 'failed');
    const run = await retry(failed.run_id);
    expect(run.spec).toMatchObject({ prompt: 'Other way.', fork_from: fork.spec.fork_from, cwd: origin.spec.cwd });
    expect(run.spec.home).not.toBe(fork.spec.home);
  });

  test('with a request id returns the same run', async () => {
    const { run_id: runId } = await bench.end(await bench.running(), 'failed');
    const again = (): Promise<RunRecord> =>
      retryRun(bench.deps, runId, { request: { request_id: 'retry-key' }, actor: undefined });
    const { results } = await race(again(), again());
    expect(new Set(results.map(({ run_id: id }) => id)).size).toBe(1);
    expect(await again()).toEqual(results[0]);
  });

  test('of an engine that is missing is refused, unless forced', async () => {
    const { run_id: runId } = await withSession();
    bench.stub.unusable = requestRefusal('ENGINE_NOT_INSTALLED.path', { program: 'codex', install: 'npm install' });
    await refusal(retry(runId), 'ENGINE_NOT_INSTALLED');
    expect((await retryRun(bench.deps, runId, { request: { force: true } })).status).toBe('queued');
  });
});
