// Detects logins by file names alone, and which of the user's files a private home starts with.
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { findEngine } from '../../src/engines/registry.js';
import { checkWorkspace } from '../../src/machine/homes/check-workspace.js';
import { findLogin, keyInstead, lookForLogin } from '../../src/machine/logins/find-login.js';
import { prepareHome } from '../../src/machine/homes/prepare-home.js';
import { createRoot } from '../support/orchestrated.js';

const PLAIN = { ask: null, resumed: null, permission: 'full', cwd: '/work', project: '/work' } as const;

function put(path: string, text = 'x'): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

const loginBy = (engine: string, env: Record<string, string>, files: Record<string, string> = {}) => {
  const home = createRoot();
  for (const [path, text] of Object.entries(files)) put(join(home, path), text);
  return findLogin(findEngine(engine), { home, env })?.replace(`${home}/`, '') ?? null;
};

test.each([
  ['claude', { ANTHROPIC_API_KEY: 'k' }, 'ANTHROPIC_API_KEY'],
  ['claude', { CLAUDE_CODE_OAUTH_TOKEN: 'k' }, 'CLAUDE_CODE_OAUTH_TOKEN'],
  ['claude', { CLAUDE_CODE_USE_BEDROCK: '1' }, 'CLAUDE_CODE_USE_BEDROCK'],
  ['claude', { ANTHROPIC_BASE_URL: 'u', ANTHROPIC_MODEL: 'm' }, null],
  ['codex', { CODEX_API_KEY: 'k' }, 'CODEX_API_KEY'],
  ['codex', { OPENAI_API_KEY: 'k' }, 'OPENAI_API_KEY'],
  ['codex', { OPENAI_API_KEY: '' }, null],
  ['codex', { OPENAI_ORG_ID: 'o' }, null],
  ['gemini', { GEMINI_API_KEY: 'k' }, 'GEMINI_API_KEY'],
  ['gemini', { GOOGLE_GENAI_USE_VERTEXAI: 'true' }, null],
  ['gemini', { GOOGLE_CLOUD_PROJECT: 'p' }, null],
  ['opencode', { ANTHROPIC_API_KEY: 'k' }, 'ANTHROPIC_API_KEY'],
  ['opencode', { GEMINI_API_KEY: 'k' }, 'GEMINI_API_KEY'],
  ['opencode', { GOOGLE_GENERATIVE_AI_API_KEY: 'k' }, 'GOOGLE_GENERATIVE_AI_API_KEY'],
  ['opencode', { OPENAI_ORG_ID: 'o', OPENAI_BASE_URL: 'u', GOOGLE_CLOUD_PROJECT: 'p' }, null],
])('%s: the environment %j is a login by %s', async (engine, env, by) => {
  expect(loginBy(engine, env)).toBe(by);
});

test.each([
  ['claude', '.claude/.credentials.json', '{}', true],
  ['codex', '.codex/auth.json', '{}', true],
  ['gemini', '.gemini/oauth_creds.json', '{}', true],
  ['gemini', '.gemini/google_accounts.json', '{"active":null}', false],
  ['gemini', '.gemini/.env', '# mine\nexport GEMINI_API_KEY = "k"\n', true],
  ['gemini', '.gemini/.env', 'GEMINI_API_KEY=\nDEBUG=1\n#GOOGLE_API_KEY=k\n', false],
  ['opencode', '.local/share/opencode/auth.json', '{}', true],
  ['opencode', '.local/share/opencode/mcp-auth.json', '{}', false],
])('%s: the file %s with %j is a login: %s', async (engine, path, text, isLogin) => {
  expect(loginBy(engine, {}, { [path]: text })).toBe(isLogin ? path : null);
});

test('a key under another name is given where there is no other login, and never beside one', async () => {
  const codex = findEngine('codex');
  const home = createRoot();
  expect(keyInstead(codex, { home, env: { OPENAI_API_KEY: 'k' } })).toEqual({ CODEX_API_KEY: 'k' });
  expect(keyInstead(codex, { home, env: { OPENAI_API_KEY: 'k', CODEX_API_KEY: 'own' } })).toEqual({});
  expect(keyInstead(codex, { home, env: {} })).toEqual({});
  put(join(home, '.codex/auth.json'));
  expect(keyInstead(codex, { home, env: { OPENAI_API_KEY: 'k' } })).toEqual({});
  expect(findLogin(codex, { home, env: { OPENAI_API_KEY: 'k' } })).toBe(join(home, '.codex/auth.json'));
});

async function homeFor(engine: string, files: readonly string[]): Promise<string> {
  const root = createRoot();
  for (const path of files) put(join(root, 'user', path), path);
  await prepareHome(findEngine(engine), {
    user: { home: join(root, 'user'), env: {} },
    home: join(root, 'home'),
    ...PLAIN,
  });
  return join(root, 'home');
}

test.each([
  [
    'claude',
    '.claude',
    '.claude',
    ['CLAUDE.md', 'agents/a.md', 'commands/c.md', 'skills/mine/SKILL.md', 'rules/r.md', 'output-styles/o.md'],
    ['projects/x.jsonl', 'history.jsonl', 'plugins/p.json', '.claude.json', 'settings.local.json'],
  ],
  ['claude', '.config/git', '.config/git', ['config', 'ignore'], ['credentials']],
  [
    'codex',
    '.codex',
    '.codex',
    ['prompt.md', 'fast.config.toml', 'rules/default.rules', 'prompts/fix.md', 'skills/mine/SKILL.md'],
    ['history.jsonl', 'sessions/x.jsonl', 'log/x.md'],
  ],
  [
    'gemini',
    '.gemini',
    '.gemini',
    ['GEMINI.md', 'more.md', 'policies/no.toml', 'commands/fix.toml'],
    ['tmp/x', 'trustedFolders.json', 'history/x'],
  ],
  [
    'opencode',
    '.config/opencode',
    'config/opencode',
    ['opencode.jsonc', 'AGENTS.md', 'agent/a.md', 'command/c.md'],
    ['package.json', 'node_modules/x.md', 'plugin/p.js'],
  ],
  ['opencode', '.config/git', 'config/git', ['config', 'ignore', 'attributes'], ['credentials']],
  ['iflow', '.config/git', '.config/git', ['config'], ['credentials']],
])(
  '%s: of %s a home begins with what restricts the agent and what its user expects, and with no more',
  async (engine, from, to, brought, left) => {
    const home = await homeFor(
      engine,
      [...brought, ...left].map((path) => join(from, path)),
    );
    for (const path of brought) expect(readFileSync(join(home, to, path), 'utf8'), path).toBe(join(from, path));
    for (const path of left) expect(existsSync(join(home, to, path)), path).toBe(false);
  },
);

test.each([
  ['gemini', '.gemini/mcp-oauth-tokens.json', '.gemini/mcp-oauth-tokens.json'],
  ['gemini', '.gemini/.env', '.env'],
  ['opencode', '.local/share/opencode/mcp-auth.json', 'data/opencode/mcp-auth.json'],
])('%s: %s is renewed for its user too', async (engine, from, to) => {
  expect(readlinkSync(join(await homeFor(engine, [from]), to)).endsWith(from)).toBe(true);
});

test('in a copied folder a link becomes its target, and a dangling link is left out', async () => {
  const root = createRoot();
  put(join(root, 'dotfiles/no.rules'), 'no');
  mkdirSync(join(root, 'user/.codex/rules'), { recursive: true });
  symlinkSync('../../../dotfiles/no.rules', join(root, 'user/.codex/rules/no.rules'));
  symlinkSync('gone', join(root, 'user/.codex/rules/gone.rules'));
  await prepareHome(findEngine('codex'), {
    user: { home: join(root, 'user'), env: {} },
    home: join(root, 'home'),
    ...PLAIN,
  });
  expect(readdirSync(join(root, 'home/.codex/rules'))).toEqual(['no.rules']);
  expect(readFileSync(join(root, 'home/.codex/rules/no.rules'), 'utf8')).toBe('no');
});

test('gemini settings that are not an object end the turn with the file name; a fixed file is accepted', async () => {
  const root = createRoot();
  const user = { home: join(root, 'user'), env: {} };
  const file = put(join(user.home, '.gemini/settings.json'), '{"security":');
  await expect(prepareHome(findEngine('gemini'), { user, home: join(root, 'home'), ...PLAIN })).rejects.toThrow(
    `${file} cannot be read as a JSON object`,
  );
  put(file, '{"ui":{}}');
  await prepareHome(findEngine('gemini'), { user, home: join(root, 'home'), ...PLAIN });
  expect(JSON.parse(readFileSync(join(root, 'home/.gemini/settings.json'), 'utf8'))).toMatchObject({ ui: {} });
});

test.each([
  ['.opencode/plugins/x.ts', 'export {}', true],
  ['opencode.json', '{"plugin":["./x.js"]}', true],
  ['opencode.jsonc', '{"pl\\u0075gin":["./x.js"]}', true],
  ['.opencode/opencode.json', '{"plugins":[]}', true],
  ['opencode.json', '{"model":"x/y"}', false],
  ['.opencode/agent/a.md', 'hello', false],
])('opencode: a workspace, or a folder that it is in, with %s of %j is refused: %s', async (path, text, refused) => {
  const home = createRoot();
  const check = (engine: string) => checkWorkspace(findEngine(engine), { home, env: {} }, join(home, 'project/sub'));
  put(join(home, path), text);
  await expect(check('opencode')).resolves.toBeUndefined();
  const nested = put(join(home, 'project', path), text);
  if (refused)
    await expect(check('opencode')).rejects.toThrow(
      new RegExp(`^${path.includes('plugins/') ? dirname(nested) : nested} has plugins that opencode executes`),
    );
  else await expect(check('opencode')).resolves.toBeUndefined();
  await expect(check('codex')).resolves.toBeUndefined();
});

const stateOf = (engine: string, files: Record<string, string>, env: Record<string, string> = {}) => {
  const home = createRoot();
  for (const [path, text] of Object.entries(files)) put(join(home, path), text);
  return lookForLogin(findEngine(engine), { home, env });
};

test.each([
  ['claude', { '.claude/settings.json': '{"apiKeyHelper":"/usr/bin/key"}' }, false],
  ['claude', { '.claude/settings.json': '{"env":{"CLAUDE_CODE_USE_VERTEX":"1"}}' }, false],
  ['claude', { '.claude/settings.json': '{"env":{"ANTHROPIC_MODEL":"m"}}' }, true],
  ['claude', { '.claude/settings.json': 'no JSON' }, true],
  ['gemini', { '.gemini/settings.json': '{"security":{"auth":{"selectedType":"vertex-ai"}}} // comment' }, false],
  ['gemini', { '.gemini/settings.json': '{"security":{"auth":{"selectedType":"oauth-personal"}}}' }, true],
  [
    'opencode',
    {
      '.config/opencode/opencode.jsonc':
        '{ /* mine */ "model":"local/m","provider":{"local":{"options":{"baseURL":"http://127.0.0.1:1"}}}}',
    },
    false,
  ],
  [
    'opencode',
    { '.config/opencode/opencode.json': '{"provider":{"local":{"options":{"baseURL":"http://127.0.0.1:1"}}}}' },
    false,
  ],
  [
    'opencode',
    { '.config/opencode/opencode.json': '{"model":"anthropic/x","provider":{"local":{"options":{}}}}' },
    true,
  ],
  ['opencode', { '.config/opencode/opencode.json': 'not JSON' }, true],
  ['rehearsal', {}, false],
] as const)('%s with the settings %j lacks a login: %s', (engine, files, isMissing) => {
  expect(stateOf(engine, files)).toEqual({ by: null, isMissing });
});
