// User settings of the real CLIs also apply in a private home, and do not interfere with Parley.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { openRealBench, type RealBench } from './real-bench.js';

function put({ root }: RealBench, path: string, text: string): void {
  mkdirSync(dirname(join(root, 'user', path)), { recursive: true });
  writeFileSync(join(root, 'user', path), text);
}

const channelOf = async (bench: RealBench, runId: string) =>
  (await bench.data.store.loadPendingInteraction(runId))?.question['channel'];

test('gemini: settings with comments choose the login; a list of allowed servers keeps the question tool', async () => {
  const bench = await openRealBench('gemini');
  const settings = readFileSync(join(bench.root, 'user/.gemini/settings.json'), 'utf8');
  put(
    bench,
    '.gemini/settings.json',
    `// mine\n${settings.replace('{', '{ "mcp": { "allowed": ["own"], "excluded": ["parley"] }, /* and */ ')}`,
  );
  const run = await bench.play('[[ask Which?|a|b]][[done 1]]', {
    execution_mode: 'interactive',
    permission: 'read-only',
  });
  expect(run.status).toBe('waiting_user');
  expect(await channelOf(bench, run.run_id)).toBe('tool');
});

test('gemini: a policy that forbids a tool forbids it here, even with everything allowed', async () => {
  const bench = await openRealBench('gemini');
  put(bench, '.gemini/policies/mine.toml', '[[rule]]\ntoolName = "write_file"\ndecision = "deny"\npriority = 999\n');
  await bench.play('[[file made.txt]][[done 1]]', { permission: 'full' });
  expect(existsSync(join(bench.cwd, 'made.txt'))).toBe(false);
});

test('codex: a rule that forbids a command forbids it here, even with everything allowed', async () => {
  const bench = await openRealBench('codex');
  put(bench, '.codex/rules/mine.rules', 'prefix_rule(pattern=["touch"], decision="forbidden")\n');
  await bench.play('[[tool touch ran.txt]][[done 1]]', { permission: 'full' });
  expect(existsSync(join(bench.cwd, 'ran.txt'))).toBe(false);
});

test('codex: a file that its settings name beside themselves is found', async () => {
  const bench = await openRealBench('codex');
  const config = readFileSync(join(bench.root, 'user/.codex/config.toml'), 'utf8');
  put(bench, '.codex/config.toml', `model_instructions_file = "voice.md"\n${config}`);
  put(bench, '.codex/voice.md', 'Always write in verse.');
  expect((await bench.play('[[done 1]]')).status).toBe('succeeded');
  expect(JSON.stringify(bench.model.requests[0]?.body)).toContain('Always write in verse.');
});

test('opencode: rules of its user that allow everything last do not loosen a read-only run', async () => {
  const bench = await openRealBench('opencode');
  const config = JSON.parse(readFileSync(join(bench.root, 'user/.config/opencode/opencode.json'), 'utf8')) as object;
  const permission = { edit: 'allow', bash: 'allow', '*': 'allow' };
  put(
    bench,
    '.config/opencode/opencode.json',
    JSON.stringify({ ...config, permission, agent: { build: { permission }, plan: { permission } } }),
  );
  await bench.play('[[tool touch ran.txt]][[file made.txt]][[done 1]]', { permission: 'read-only' });
  expect(['ran.txt', 'made.txt'].filter((name) => existsSync(join(bench.cwd, name)))).toEqual([]);
});

test('opencode: commits are its user’s, though their git settings lie in a folder that is hidden from it', async () => {
  const bench = await openRealBench('opencode');
  put(bench, '.config/git/config', '[user]\n\tname = Ann from XDG\n');
  put(bench, '.gitconfig', '[user]\n\temail = ann@home\n');
  await bench.play('[[tool git config user.name; git config user.email]][[done 1]]');
  const lastRequest = JSON.stringify(bench.model.requests.at(-1)?.body);
  expect(lastRequest).toContain('Ann from XDG');
  expect(lastRequest).toContain('ann@home');
});

test('gemini: unreadable settings fail the run with a code and the file name, and are not replaced', async () => {
  const bench = await openRealBench('gemini');
  put(bench, '.gemini/settings.json', '{ "security": ');
  expect(await bench.play('[[done 1]]')).toMatchObject({
    status: 'failed',
    error: {
      code: 'ENGINE_SETTINGS_INVALID',
      message: expect.stringContaining('user/.gemini/settings.json cannot be read as a JSON object'),
    },
  });
  expect(readFileSync(join(bench.root, 'user/.gemini/settings.json'), 'utf8')).toBe('{ "security": ');
});
