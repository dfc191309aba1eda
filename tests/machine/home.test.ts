// Private homes: the login is linked, never copied; sessions are found by their files alone.
import { lstatSync, mkdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { findEngine } from '../../src/engines/registry.js';
import { hasSession } from '../../src/machine/sessions/find-session.js';
import { prepareHome } from '../../src/machine/homes/prepare-home.js';
import { createRoot } from '../support/orchestrated.js';

const PLAIN = { ask: null, resumed: null, permission: 'full', cwd: '/work', project: '/work' } as const;

function put(path: string, text = '{}'): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

test.each([
  ['codex', '.codex/auth.json', '.codex/auth.json'],
  ['gemini', '.gemini/oauth_creds.json', '.gemini/oauth_creds.json'],
  ['iflow', '.iflow/oauth_creds.json', '.iflow/oauth_creds.json'],
  ['opencode', '.local/share/opencode/auth.json', 'data/opencode/auth.json'],
])(
  '%s: the user’s login is a link in the private home, so a login that is renewed is renewed for both',
  async (name, from, to) => {
    const root = createRoot();
    const user = { home: join(root, 'user'), env: {} };
    const [login, home] = [put(join(user.home, from), 'old'), join(root, 'home')];
    const link = join(home, to);
    await prepareHome(findEngine(name), { user, home, ...PLAIN });
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(readlinkSync(link)).toBe(login);
    writeFileSync(link, 'renewed');
    expect(readFileSync(login, 'utf8')).toBe('renewed');
    // One turn later: everything stays, even if the user has logged out meanwhile.
    rmSync(login);
    await prepareHome(findEngine(name), { user, home, ...PLAIN });
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(statSync(dirname(link)).mode & 0o077).toBe(0);
  },
);

test('claude: the user’s login is not linked, because a renewal would replace the link', async () => {
  const root = createRoot();
  const user = { home: join(root, 'user'), env: {} };
  put(join(user.home, '.claude/.credentials.json'));
  await prepareHome(findEngine('claude'), { user, home: join(root, 'home'), ...PLAIN });
  expect(lstatSync(join(root, 'home/.claude/.credentials.json'), { throwIfNoEntry: false })).toBeUndefined();
});

test('without a login none is linked, and a file that the engine wrote is left alone', async () => {
  const root = createRoot();
  const user = { home: join(root, 'user'), env: { CODEX_HOME: join(root, 'elsewhere') } };
  await prepareHome(findEngine('codex'), { user, home: join(root, 'home'), ...PLAIN });
  expect(lstatSync(join(root, 'home/.codex/auth.json'), { throwIfNoEntry: false })).toBeUndefined();
  put(join(root, 'home/.codex/auth.json'), 'its own');
  put(join(root, 'elsewhere/auth.json'));
  await prepareHome(findEngine('codex'), { user, home: join(root, 'home'), ...PLAIN });
  expect(readFileSync(join(root, 'home/.codex/auth.json'), 'utf8')).toBe('its own');
  // The login is in the user's own CODEX_HOME.
  await prepareHome(findEngine('codex'), { user, home: join(root, 'second'), ...PLAIN });
  expect(readlinkSync(join(root, 'second/.codex/auth.json'))).toBe(join(root, 'elsewhere/auth.json'));
});

test.each([
  ['claude', '.claude/CLAUDE.md', '.claude/CLAUDE.md'],
  ['codex', '.codex/AGENTS.md', '.codex/AGENTS.md'],
  ['gemini', '.gemini/GEMINI.md', '.gemini/GEMINI.md'],
  ['iflow', '.iflow/settings.json', '.iflow/settings.json'],
  ['opencode', '.config/opencode/opencode.json', 'config/opencode/opencode.json'],
])(
  '%s: the user’s settings are copied once, and what the engine makes of them stays in the home',
  async (name, from, to) => {
    const root = createRoot();
    const user = { home: join(root, 'user'), env: {} };
    const [settings, home] = [put(join(user.home, from), 'the user’s'), join(root, 'home')];
    await prepareHome(findEngine(name), { user, home, ...PLAIN });
    expect(lstatSync(join(home, to)).isFile()).toBe(true);
    writeFileSync(join(home, to), 'changed by the engine');
    await prepareHome(findEngine(name), { user, home, ...PLAIN });
    expect(readFileSync(join(home, to), 'utf8')).toBe('changed by the engine');
    expect(readFileSync(settings, 'utf8')).toBe('the user’s');
  },
);

test('the gemini settings add the question tool of this turn, keep the user settings and keep sessions', async () => {
  const root = createRoot();
  const user = { home: join(root, 'user'), env: {} };
  put(
    join(user.home, '.gemini/settings.json'),
    '{"general":{"vimMode":true},"mcpServers":{"own":{"command":"x"}},"security":{"auth":{"selectedType":"oauth"}}}',
  );
  const home = join(root, 'home');
  const read = () => JSON.parse(readFileSync(join(home, '.gemini/settings.json'), 'utf8')) as object;
  await prepareHome(findEngine('gemini'), {
    user,
    home,
    ask: ['/node', 'parley.js', '--nonce', '1'],
    resumed: null,
    permission: 'full',
    cwd: '/work',
    project: '/work',
  });
  const common = {
    context: { fileFiltering: { enableRecursiveFileSearch: false } },
    general: { vimMode: true, sessionRetention: { enabled: false }, maxAttempts: 3 },
    security: { auth: { selectedType: 'oauth' }, folderTrust: { enabled: true } },
  };
  expect(read()).toMatchObject({
    ...common,
    mcpServers: {
      own: { command: 'x' },
      parley: { command: '/node', args: ['parley.js', '--nonce', '1'], trust: true },
    },
  });
  await prepareHome(findEngine('gemini'), {
    user,
    home,
    ask: ['/node', 'parley.js', '--nonce', '2'],
    resumed: null,
    permission: 'full',
    cwd: '/work',
    project: '/work',
  });
  expect(read()).toMatchObject({ mcpServers: { parley: { args: ['parley.js', '--nonce', '2'] } } });
  await prepareHome(findEngine('gemini'), { user, home, ...PLAIN });
  expect(read()).toEqual({
    ...common,
    general: { ...common.general, enableAutoUpdate: false, enableAutoUpdateNotification: false },
    mcpServers: { own: { command: 'x' } },
  });
});

test('a stored session of gemini is repaired before it is continued, and only then', async () => {
  const root = createRoot();
  const [user, home, id] = [{ home: join(root, 'user'), env: {} }, join(root, 'home'), UUID];
  const doubled =
    `{"sessionId":"${id}"}\n{"type":"gemini","toolCalls":[{"id":"a","result":[1]}]}\n` +
    '{"type":"user","content":[{"functionResponse":{"id":"a"}}]}\n';
  const file = put(join(home, `.gemini/tmp/x/chats/session-2026-11-15T10-00-${id.slice(0, 8)}.jsonl`), doubled);
  await prepareHome(findEngine('gemini'), { user, home, ...PLAIN });
  expect(readFileSync(file, 'utf8')).toBe(doubled);
  await prepareHome(findEngine('gemini'), {
    user,
    home,
    ask: null,
    resumed: { engine: 'gemini', handle_type: 'session_id', handle_value: id, cwd: '/w', home, created_at_attempt: 1 },
    permission: 'full',
    cwd: '/work',
    project: '/work',
  });
  expect(readFileSync(file, 'utf8')).toBe(doubled.replace(',"result":[1]', ''));
});

const UUID = '019a8f2c-1111-7abc-8def-0123456789ab';

test.each([
  ['codex', UUID, `.codex/sessions/2026/11/15/rollout-2026-11-15T10-00-00-${UUID}.jsonl`, '{}'],
  [
    'gemini',
    UUID,
    `.gemini/tmp/3f2a/chats/session-2026-11-15T10-00-${UUID.slice(0, 8)}.jsonl`,
    `{"sessionId":"${UUID}"}`,
  ],
  ['iflow', `session-${UUID}`, `.iflow/projects/-home-ann-work/session-${UUID}.jsonl`, '{}'],
  ['opencode', 'ses_abc123', 'data/opencode/storage/session/global/ses_abc123.json', '{}'],
  ['opencode', 'ses_abc123', 'data/opencode/opencode.db', 'SQLite format 3\0 … ses_abc123 …'],
  ['opencode', 'ses_abc123', 'data/opencode/opencode.db-wal', '… ses_abc123 …'],
  ['rehearsal', UUID, `.parley-rehearsal/sessions/${UUID}.json`, '{}'],
])('%s: a session is found where the engine keeps it, and only that one', async (engine, id, path, text) => {
  const home = createRoot();
  const handle = {
    engine,
    handle_type: 'session_id' as const,
    handle_value: id,
    cwd: '/',
    home,
    created_at_attempt: 1,
  };
  expect(await hasSession(handle)).toBe(false);
  put(join(home, path), text);
  expect(await hasSession(handle)).toBe(true);
  expect(await hasSession({ ...handle, handle_value: id.replace(/.{2}$/, 'ff') })).toBe(false);
  expect(await hasSession({ ...handle, home: join(home, 'other') })).toBe(false);
  expect(await hasSession({ ...handle, home: null })).toBe(false);
});

test('gemini: two sessions whose ids begin alike are distinguished by their files', async () => {
  const home = createRoot();
  put(
    join(home, `.gemini/tmp/3f2a/chats/session-x-${UUID.slice(0, 8)}.jsonl`),
    `{"sessionId":"${UUID.slice(0, 8)}-2222-7abc-8def-0123456789ab"}`,
  );
  expect(
    await hasSession({
      engine: 'gemini',
      handle_type: 'session_id',
      handle_value: UUID,
      cwd: '/',
      home,
      created_at_attempt: 1,
    }),
  ).toBe(false);
});
