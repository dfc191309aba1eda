// Parley on the real Claude Code: its failures, instructions, settings of the user, forks, and many runs at once.
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { RunRecord } from '../../src/store/store.js';
import { openRealBench, type BenchOptions, type RealBench } from './real-bench.js';

const open = (options?: BenchOptions) => openRealBench('claude', options);

function put(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

const sentTo = ({ model }: RealBench) => JSON.stringify(model.requests.map(({ body }) => body));
const warningsIn = async (bench: RealBench, { run_id: id }: RunRecord) =>
  (await bench.events(id))
    .filter(({ event }) => event.type === 'diagnostic.engine.warning')
    .map(({ data }) => String(data['message']));

describe('failures', () => {
  test.each([
    ['http 403', 'ENGINE_AUTH_REQUIRED'],
    ['http 400', 'ENGINE_REQUEST_REJECTED'],
    ['http 404', 'ENGINE_REQUEST_REJECTED'],
    ['http 529', 'ENGINE_SERVICE_FAILED'],
    ['crash', 'ENGINE_SERVICE_FAILED'],
    ['html', 'ENGINE_SERVICE_FAILED'],
  ])('a service that answers with %s fails the run with %s', async (what, code) => {
    const bench = await open();
    expect(await bench.play(`[[${what}]]`)).toMatchObject({ status: 'failed', error: { code } });
  });

  test('without a login the run fails with ENGINE_AUTH_REQUIRED, and the service is not asked', async () => {
    const bench = await open({ env: () => ({ ANTHROPIC_API_KEY: undefined }) });
    expect(await bench.play('hello')).toMatchObject({
      status: 'failed',
      error: { code: 'ENGINE_AUTH_REQUIRED', message: expect.stringContaining('Not logged in') },
    });
    expect(bench.model.requests).toEqual([]);
  });

  test('an auto run whose agent asks all the same fails with AUTO_MODE_CANNOT_ASK', async () => {
    const bench = await open();
    expect(await bench.play('[[answer {"ask_user":{"prompt":"Which?"}}]]')).toMatchObject({
      status: 'failed',
      error: { code: 'AUTO_MODE_CANNOT_ASK' },
    });
  });

  test('denied calls are counted and no questions; the agent continues without them', async () => {
    const bench = await open();
    const prompt = '[[tool touch ran.txt]][[done 1]]';
    const run = await bench.play(prompt, { permission: 'workspace-write' });
    expect(run).toMatchObject({ status: 'succeeded', result: 1 });
    expect(await warningsIn(bench, run)).toEqual(['1 tool call was not permitted: Bash']);
    expect(existsSync(join(bench.cwd, 'ran.txt'))).toBe(false);
  });
});

describe('the workspace below full', () => {
  test('its instructions are text: imports in them and links out of the folder are not read', async () => {
    const bench = await open();
    put(join(bench.root, 'secret.txt'), 'SECRET-CONTENT');
    put(join(bench.cwd, 'more.md'), 'IMPORTED-CONTENT');
    put(join(bench.cwd, 'CLAUDE.md'), 'Write in verse.\n@more.md\n@../secret.txt\n!`touch ran`\n');
    put(join(bench.cwd, 'CLAUDE.local.md'), 'LOCAL-CONTENT');
    const run = await bench.play('[[done 1]]', { permission: 'read-only' });
    expect(run.status).toBe('succeeded');
    expect(sentTo(bench)).toContain('Write in verse.');
    expect(sentTo(bench)).not.toMatch(/SECRET-CONTENT|IMPORTED-CONTENT|LOCAL-CONTENT/);
    expect(await warningsIn(bench, run)).toEqual([]);

    const linked = await open();
    put(join(linked.root, 'secret.txt'), 'SECRET-CONTENT');
    symlinkSync('../secret.txt', join(linked.cwd, 'CLAUDE.md'));
    const other = await linked.play('[[done 1]]', { permission: 'read-only' });
    expect(other.status).toBe('succeeded');
    expect(sentTo(linked)).not.toContain('SECRET-CONTENT');
    expect(await warningsIn(linked, other)).toEqual([
      'the agent does not get the instructions of the workspace: CLAUDE.md is a link that leads out of the folder',
    ]);
  });

  test('its instructions still apply after a question', async () => {
    const bench = await open();
    put(join(bench.cwd, 'CLAUDE.md'), 'Write in verse.');
    const run = await bench.play('[[ask Which?]][[done 1]]', {
      permission: 'read-only',
      execution_mode: 'interactive',
    });
    const before = bench.model.requests.length;
    expect(await bench.reply(run.run_id, 'this')).toMatchObject({ status: 'succeeded' });
    for (const { body } of bench.model.requests.slice(before))
      expect(JSON.stringify(body)).toContain('Write in verse.');
  });
});

async function withSettings(settings: object): Promise<RealBench> {
  const bench = await open();
  put(join(bench.root, 'user/.claude/settings.json'), JSON.stringify(settings));
  return bench;
}

describe('settings of the user', () => {
  const ALLOW = { permissions: { allow: ['Bash', 'Edit', 'Write'] } };

  const CALLS = '[[tool touch ran.txt]][[file made.txt]][[done 1]]';

  test('what they allow holds with workspace-write, and not in a read-only run', async () => {
    const bench = await withSettings(ALLOW);
    await bench.play(CALLS, { permission: 'read-only' });
    expect(readdirSync(bench.cwd)).toEqual([]);
    await bench.play(CALLS, { permission: 'workspace-write' });
    expect(readdirSync(bench.cwd).toSorted()).toEqual(['made.txt', 'ran.txt']);
  });

  test('a hook of theirs that allows everything does not loosen a read-only run', async () => {
    const output = { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'allow' } };
    const bench = await withSettings({
      hooks: {
        PreToolUse: [{ matcher: '*', hooks: [{ type: 'command', command: `echo '${JSON.stringify(output)}'` }] }],
      },
    });
    await bench.play(CALLS, { permission: 'read-only' });
    expect(readdirSync(bench.cwd)).toEqual([]);
  });

  test('a rule of theirs that denies a tool denies it even with full permission', async () => {
    const bench = await withSettings({ permissions: { deny: ['Write'] } });
    await bench.play(CALLS, { permission: 'full' });
    expect(readdirSync(bench.cwd)).toEqual(['ran.txt']);
  });

  test('a hook of theirs that defers a call of an auto run fails it as a question, and nothing ran', async () => {
    const output = { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'defer' } };
    const bench = await withSettings({
      hooks: {
        PreToolUse: [{ matcher: '*', hooks: [{ type: 'command', command: `echo '${JSON.stringify(output)}'` }] }],
      },
    });
    const run = await bench.play(CALLS, { permission: 'workspace-write' });
    expect(run).toMatchObject({ status: 'failed', error: { code: 'AUTO_MODE_CANNOT_ASK' } });
    expect(readdirSync(bench.cwd)).toEqual([]);
  });

  test('settings that are no JSON fail the run with the name of the file', async () => {
    const bench = await open();
    put(join(bench.root, 'user/.claude/settings.json'), '{ "model": ');
    expect(await bench.play('[[done 1]]')).toMatchObject({
      status: 'failed',
      error: { code: 'ENGINE_SETTINGS_INVALID', message: expect.stringContaining('.claude/settings.json') },
    });
  });
});

test('a waiting run is forked: both conversations continue, each in its own session', async () => {
  const bench = await open();
  const waiting = await bench.play('Begin. [[ask Which database?]]', { execution_mode: 'interactive' });
  const { run_id: copy } = await bench.orchestrator.fork(waiting.run_id, {
    prompt: 'Only in the copy. [[done {"copy":true}]]',
  });
  const forked = await bench.waitUntilIdle(copy);
  expect(forked).toMatchObject({ status: 'succeeded', result: { copy: true } });
  const last = () => JSON.stringify(bench.model.requests.at(-1)?.body);
  for (const text of ['Begin.', 'Which database?', 'Only in the copy.']) expect(last()).toContain(text);
  const done = await bench.reply(waiting.run_id, 'Postgres. [[done {"copy":false}]]');
  expect(done).toMatchObject({ status: 'succeeded', result: { copy: false } });
  expect(last()).toContain('Begin.');
  expect(last()).not.toContain('Only in the copy.');
  const [one, two] = await Promise.all([done, forked].map((run) => bench.data.store.loadHandle(run.request_id)));
  expect(one?.handle_value).not.toBe(two?.handle_value);
  await bench.orchestrator.delete(waiting.run_id);
  const { run_id: heir } = await bench.orchestrator.continueFrom(copy, { prompt: 'Go on. [[done 3]]' });
  expect(await bench.waitUntilIdle(heir)).toMatchObject({ status: 'succeeded', result: 3 });
  expect(last()).toContain('Only in the copy.');
});

test('twenty runs at once ask, are answered, and do not see each other', async () => {
  const bench = await open({ settings: { slots: 20 } });
  const names = Array.from({ length: 20 }, (_, index) => `agent-${String(index).padStart(2, '0')}`);
  const waiting = await Promise.all(
    names.map((name) =>
      bench.play(`I am ${name}. [[ask Which, ${name}?]][[done "${name}"]]`, { execution_mode: 'interactive' }),
    ),
  );
  expect(waiting.map(({ status }) => status)).toEqual(names.map(() => 'waiting_user'));
  const done = await Promise.all(waiting.map(({ run_id: id }) => bench.reply(id, 'Go.')));
  expect(done.map(({ result }) => result)).toEqual(names);
  for (const { body } of bench.model.requests) {
    const text = JSON.stringify(body);
    expect(names.filter((name) => text.includes(`I am ${name}.`))).toHaveLength(1);
  }
});
