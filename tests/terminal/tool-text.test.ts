import { expect, test } from 'vitest';
import type { FcmpData } from '../../src/fcmp/event.js';
import type { Json } from '../../src/kernel/json.js';
import { renderTool, tellInput } from '../../src/terminal/tool-text.js';
import { expectFits, plain } from './fixtures.js';

test.each<[Json, string]>([
  [{ command: 'ls -l', description: 'list' }, 'ls -l'],
  [{ command: ['git', 'status'] }, 'git status'],
  [{ command: "/bin/bash -lc 'echo hi && exit 3'" }, 'echo hi && exit 3'],
  [{ command: "bash -lc 'echo '\\''quoted'\\'''" }, "echo 'quoted'"],
  [{ command: '/bin/zsh -lc "echo \\"x\\""' }, 'echo "x"'],
  [{ command: '/bin/bash -lc ls' }, 'ls'],
  [{ command: "bash -lc 'a' && rm 'b'" }, "bash -lc 'a' && rm 'b'"],
  [{ filePath: 'a.txt', content: 'x' }, 'a.txt'],
  [
    {
      changes: [
        { path: 'a', kind: 'add' },
        { path: 'b', kind: 'update' },
      ],
    },
    'a, b',
  ],
  [{ query: 'weather' }, 'weather'],
  [{ prompt: 'Which?', options: [] }, 'Which?'],
  [{ depth: 3 }, '{"depth":3}'],
  [{}, ''],
  [null, ''],
  ['text', 'text'],
  [[1, 2], '[1,2]'],
])('%j is about %j', (input, what) => {
  expect(tellInput(input)).toBe(what);
});

test('keeps no more of a huge input than a line can show', () => {
  expect(tellInput({ command: `bash -lc '${'x'.repeat(1 << 20)}'` })).toHaveLength(2000);
  expect(tellInput({ unknown: 'x'.repeat(1 << 20) })).toHaveLength(2000);
});

const call = (data: Partial<FcmpData['assistant.tool.completed']>): FcmpData['assistant.tool.completed'] => ({
  call_id: '1',
  name: 'shell',
  kind: 'command',
  status: 'completed',
  ...data,
});

test.each<[string, string]>([
  [renderTool(call({ duration_ms: 1234 }), { subject: 'ls', elapsedMs: null }, plain(80)), '✓ shell  ls · 1.2 s'],
  [renderTool(call({}), { subject: 'ls', elapsedMs: 50 }, plain(80)), '✓ shell  ls · 50 ms'],
  [renderTool(call({ exit_code: 0 }), { subject: '', elapsedMs: null }, plain(80)), '✓ shell'],
  [
    renderTool(
      call({ status: 'failed', exit_code: 3, duration_ms: 5 }),
      { subject: 'false', elapsedMs: null },
      plain(80),
    ),
    '✗ shell  false · exit 3 · 5 ms',
  ],
  [
    renderTool(call({ status: 'failed', error: 'not\nallowed' }), { subject: 'rm', elapsedMs: null }, plain(80)),
    '✗ shell  rm · not allowed',
  ],
  [
    renderTool(
      call({ status: 'failed', error: 'the reason is a long one' }),
      { subject: 'a long command indeed', elapsedMs: null },
      plain(40),
    ),
    '✗ shell  a long command… · the reason i…',
  ],
  [
    renderTool(call({ duration_ms: 5 }), { subject: '移动所有的旧文件到新的目录', elapsedMs: null }, plain(30)),
    '✓ shell  移动所有的旧… · 5 ms',
  ],
])('%s', (line, expected) => {
  expect(line).toBe(expected);
});

test('keeps how it ended and how long it took on any width', () => {
  for (let width = 8; width < 60; width += 1) {
    const line = renderTool(
      call({ name: 'a_very_long_name_of_a_tool', status: 'failed', exit_code: 3, duration_ms: 5, error: 'because' }),
      { subject: 'what it was about', elapsedMs: null },
      plain(width),
    );
    expectFits(line, width);
    if (width >= 26) expect(line).toMatch(/ · exit 3 · 5 ms$/);
  }
});
