// Gemini's settings for a turn: the user's own with the question tool, read as Gemini reads them.
import { expect, test } from 'vitest';
import { stripComments, writeSettings } from '../../src/engines/gemini/settings-file.js';

const NEEDS = { ask: ['/node', '/a b/parley.js'], permission: 'read-only', cwd: '/work', project: '/work' } as const;
const written = (current: string | null, needs: Parameters<typeof writeSettings>[1] = NEEDS) =>
  JSON.parse(writeSettings(current, needs) ?? 'null') as object | null;

test.each([
  ['{"a":1} // end', { a: 1 }],
  ['// begin\n{"a":1, // one\r\n"b":2 /* two\n lines */}', { a: 1, b: 2 }],
  [
    '{"url":"http://x//y","glob":"/* no */","quote":"\\"// no","back":"\\\\"/* yes */}',
    { url: 'http://x//y', glob: '/* no */', quote: '"// no', back: '\\' },
  ],
  ['\uFEFF{"a":/**/1}', { a: 1 }],
  ['{"a":1}/* open', { a: 1 }],
])('comments are taken out of %j, and nothing else', (text, value) => {
  expect(JSON.parse(stripComments(text))).toEqual(value);
});

test('a login that was chosen in settings with comments stays chosen', () => {
  expect(written('{\n  // my login\n  "security": { "auth": { "selectedType": "oauth-personal" } }\n}')).toMatchObject({
    security: { auth: { selectedType: 'oauth-personal' } },
  });
});

test.each(['', '[]', 'null', '"x"', '{', '{"a":1,}', '{"a" 1}'])(
  '%j is not taken for settings, as Gemini itself would not',
  (text) => {
    expect(written(text)).toBeNull();
  },
);

test('no settings are empty ones', () => {
  expect(written(null)).toMatchObject({
    mcpServers: { parley: { command: '/node', args: ['/a b/parley.js'], trust: true } },
  });
});

test('lists of servers that the user allows or excludes do not hide the question tool', () => {
  expect(written('{"mcp":{"allowed":["own"],"excluded":["parley","other"],"serverCommand":"x"}}')).toMatchObject({
    mcp: { allowed: ['own', 'parley'], excluded: ['other'], serverCommand: 'x' },
  });
  expect(written('{"mcp":{"excluded":["other"]}}')).toMatchObject({ mcp: { excluded: ['other'] } });
  expect(written('{"mcp":{"allowed":["own"]}}', { ...NEEDS, ask: null })).toMatchObject({ mcp: { allowed: ['own'] } });
  // A turn later it stands there once.
  expect(written(writeSettings('{"mcp":{"allowed":["own"]}}', NEEDS))).toMatchObject({
    mcp: { allowed: ['own', 'parley'] },
  });
});

test('a dollar sign in a path is no variable to Gemini', () => {
  expect(written(null, { ...NEEDS, ask: ['/node', '/$HOME/${X}'] })).toMatchObject({
    mcpServers: { parley: { args: ['/${PARLEY_NEVER_SET:-$}HOME/${PARLEY_NEVER_SET:-$}{X}'] } },
  });
});

test('folder trust is required, and below full a .env of the workspace is never read', () => {
  expect(written('{"security":{"folderTrust":{"enabled":false}},"advanced":{"ignoreLocalEnv":false}}')).toMatchObject({
    security: { folderTrust: { enabled: true } },
    advanced: { ignoreLocalEnv: true },
  });
  expect(written('{"advanced":{"ignoreLocalEnv":false}}', { ...NEEDS, permission: 'full' })).toMatchObject({
    advanced: { ignoreLocalEnv: false },
  });
});
