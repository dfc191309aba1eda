// How the real CLIs read a caller's model name: joined with its option it is a value, whatever it looks like.
import { expect, test } from 'vitest';
import { modelArgument } from '../../src/engines/engine.js';
import { run, sitDown } from './real-cli.js';

// The start of a command line of each engine, as Parley builds it, that would end well with a model that exists.
const ARGS = {
  claude: ['-p', '--output-format', 'stream-json', '--verbose', '--permission-mode', 'default'],
  codex: ['exec', '--json', '--skip-git-repo-check'],
  gemini: ['-o', 'stream-json', '--approval-mode', 'default', '--skip-trust'],
  opencode: ['run', '--format', 'json'],
} as const;

test('claude asks for the model "--dangerously-skip-permissions" and keeps its permission mode', async () => {
  const desk = await sitDown('claude');
  const model = '--dangerously-skip-permissions';
  const { lines } = await run(
    desk,
    [...ARGS.claude, ...modelArgument({ model })],
    '[[tool touch made]] [[answer hello]]',
  );
  expect(lines[0]).toMatchObject({ subtype: 'init', model, permissionMode: 'default' });
  expect(desk.model.requests[0]?.body).toMatchObject({ model });
  expect(lines.some(({ subtype }) => subtype === 'permission_denied')).toBe(true);
});

test.each(['--yolo', '--dangerously-bypass-approvals-and-sandbox'])(
  'codex asks for the model "%s" and stays in its sandbox',
  async (model) => {
    const desk = await sitDown('codex');
    const { lines } = await run(
      desk,
      [...ARGS.codex, '-s', 'read-only', ...modelArgument({ model }), '-'],
      '[[answer hello]]',
    );
    expect(lines.some(({ type }) => type === 'turn.completed')).toBe(true);
    const { body } = desk.model.requests[0] ?? {};
    expect(body?.['model']).toBe(model);
    expect(JSON.stringify(body)).toContain('read-only');
  },
);

test('gemini asks for the model "--yolo" and keeps its approval mode', async () => {
  const desk = await sitDown('gemini');
  const { lines } = await run(
    desk,
    [...modelArgument({ model: '--yolo' }), ...ARGS.gemini],
    '[[tool touch made]] [[answer hello]]',
  );
  expect(lines[0]).toMatchObject({ type: 'init', model: '--yolo' });
  expect(desk.model.requests.map(({ path }) => path)).toEqual(
    expect.arrayContaining([expect.stringContaining('--yolo:')]),
  );
  expect(lines.filter(({ type }) => type === 'tool_result')).toEqual([expect.objectContaining({ status: 'error' })]);
});

// OpenCode does not know such a model and fails in its own session: nothing was allowed, and it connected to no other
// server.
test.each(['--auto', '--attach=http://127.0.0.1:9'])(
  'opencode searches for a model "%s", finds none, and takes no option from it',
  async (model) => {
    const desk = await sitDown('opencode');
    const { lines } = await run(desk, [...ARGS.opencode, ...modelArgument({ model })], '[[answer hello]]');
    expect(lines).toEqual([expect.objectContaining({ type: 'error', sessionID: expect.stringMatching(/^ses_/) })]);
    expect(desk.model.requests).toEqual([]);
  },
);
