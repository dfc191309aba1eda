// Which variables of the user's environment an engine gets, and where its program is found.
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { ENGINES, findEngine } from '../../src/engines/registry.js';
import type { Machine } from '../../src/machine/machine.js';
import { findProgram } from '../../src/machine/programs/find-program.js';
import { buildEnvironment } from '../../src/machine/homes/environment.js';
import { findNamed, findOnPath } from '../../src/process/find-program.js';
import { DEFAULT_SETTINGS } from '../../src/settings/settings.js';
import { createRoot } from '../support/orchestrated.js';

const ENV = {
  PATH: '/usr/bin',
  HOME: '/home/ann',
  LANG: 'de_DE.UTF-8',
  LC_TIME: 'C',
  https_proxy: 'http://proxy',
  NO_PROXY: 'localhost',
  SSH_AUTH_SOCK: '/agent',
  GIT_AUTHOR_NAME: 'Ann',
  TERM: 'xterm',
  AWS_SECRET_ACCESS_KEY: 'secret',
  GITHUB_TOKEN: 'secret',
  NPM_TOKEN: 'secret',
  DATABASE_URL: 'secret',
  PARLEY_DATA: '/data',
  PARLEY_TOKEN: 'secret',
  NODE_OPTIONS: '--inspect',
  LD_PRELOAD: 'evil.so',
  OPENAI_API_KEY: 'for codex',
  GEMINI_API_KEY: 'for gemini',
  GOOGLE_CLOUD_PROJECT: 'for gemini',
  IFLOW_API_KEY: 'for iflow',
  OPENCODE_CONFIG: 'for opencode',
  ANTHROPIC_API_KEY: 'for claude and opencode',
  CODEX_HOME: '/elsewhere',
  GEMINI_CLI_HOME: '/elsewhere',
};
const user = { home: '/home/ann', env: ENV };
const environmentOf = (name: string, passthrough: string[] = []) =>
  buildEnvironment(findEngine(name), { user, home: '/private', passthrough });

test.each(ENGINES.map(({ name }) => name))(
  '%s gets what any program needs, and none of the secrets beside its own',
  (name) => {
    const env = environmentOf(name);
    expect(env).toMatchObject({
      PATH: '/usr/bin',
      LANG: 'de_DE.UTF-8',
      LC_TIME: 'C',
      https_proxy: 'http://proxy',
      NO_PROXY: 'localhost',
      SSH_AUTH_SOCK: '/agent',
      GIT_AUTHOR_NAME: 'Ann',
    });
    for (const secret of [
      'AWS_SECRET_ACCESS_KEY',
      'GITHUB_TOKEN',
      'NPM_TOKEN',
      'DATABASE_URL',
      'PARLEY_DATA',
      'PARLEY_TOKEN',
      'NODE_OPTIONS',
      'LD_PRELOAD',
    ])
      expect(env).not.toHaveProperty(secret);
  },
);

test.each([
  ['claude', ['ANTHROPIC_API_KEY']],
  ['codex', ['OPENAI_API_KEY']],
  ['gemini', ['GEMINI_API_KEY', 'GOOGLE_CLOUD_PROJECT']],
  ['iflow', ['IFLOW_API_KEY']],
  // It speaks to many providers.
  ['opencode', ['OPENAI_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_CLOUD_PROJECT', 'OPENCODE_CONFIG', 'ANTHROPIC_API_KEY']],
  ['rehearsal', []],
])('%s gets its own keys and no others', (name, own) => {
  const keys = Object.keys(ENV).filter((key) => /^(?:OPENAI|GEMINI_API|GOOGLE|IFLOW|OPENCODE|ANTHROPIC)/.test(key));
  expect(keys.filter((key) => key in environmentOf(name)).toSorted()).toEqual(own.toSorted());
});

test.each([
  ['claude', 'CLAUDE_CONFIG_DIR', '/private/.claude'],
  ['claude', 'HOME', '/private'],
  ['claude', 'CLAUDE_CODE_TMPDIR', '/private/tmp'],
  ['codex', 'CODEX_HOME', '/private/.codex'],
  ['gemini', 'GEMINI_CLI_HOME', '/private'],
  ['iflow', 'HOME', '/private'],
  ['opencode', 'XDG_DATA_HOME', '/private/data'],
  ['rehearsal', 'HOME', '/private'],
])('%s keeps everything in its private home by %s, whatever the user has set', (name, variable, value) => {
  expect(environmentOf(name)[variable]).toBe(value);
});

test.each([
  [{}, '/home/ann/.claude'],
  [{ CLAUDE_CONFIG_DIR: '/config' }, '/config'],
  [{ CLAUDE_CONFIG_DIR: '/config', CLAUDE_SECURESTORAGE_CONFIG_DIR: '/logins' }, '/logins'],
  [{ CLAUDE_CONFIG_DIR: '/config', CLAUDE_SECURESTORAGE_CONFIG_DIR: '' }, '/home/ann/.claude'],
])('claude finds and renews the login where it is, with %j of the user in %s', (env, folder) => {
  const options = { user: { home: '/home/ann', env }, passthrough: [] };
  const claude = findEngine('claude');
  expect(buildEnvironment(claude, { ...options, home: '/private' })).toMatchObject({
    CLAUDE_SECURESTORAGE_CONFIG_DIR: folder,
    CLAUDE_CONFIG_DIR: '/private/.claude',
  });
  expect(buildEnvironment(claude, { ...options, home: null })).not.toHaveProperty('CLAUDE_SECURESTORAGE_CONFIG_DIR');
});

test.each([
  [
    'opencode',
    ['OPENCODE_PERMISSION', 'OPENCODE_CONFIG_CONTENT', 'OPENCODE_DB', 'OPENCODE_DISABLE_PROJECT_CONFIG'],
    'OPENCODE_CONFIG',
  ],
  ['gemini', ['GEMINI_CLI_TRUST_WORKSPACE', 'GEMINI_CLI_SYSTEM_SETTINGS_PATH', 'GEMINI_CLI_HOME'], 'GEMINI_MODEL'],
  ['codex', ['CODEX_SQLITE_HOME'], 'CODEX_API_KEY'],
  [
    'claude',
    ['CLAUDE_CODE_TMPDIR', 'CLAUDE_CODE_ENTRYPOINT', 'CLAUDE_CODE_SSE_PORT', 'CLAUDECODE'],
    'CLAUDE_CODE_OAUTH_TOKEN',
  ],
])('%s ignores %j of the user and follows Parley', (name, held, passed) => {
  const userEnv = Object.fromEntries([...held, passed].map((variable) => [variable, 'the user’s']));
  const env = buildEnvironment(findEngine(name), {
    user: { home: '/home/ann', env: userEnv },
    home: '/private',
    passthrough: [],
  });
  expect(
    Object.entries(env)
      .filter(([, value]) => value === 'the user’s')
      .map(([variable]) => variable),
  ).toEqual([passed]);
});

test('a variable that the operator names is passed on, exactly that one', () => {
  expect(environmentOf('codex', ['GITHUB_TOKEN'])).toMatchObject({ GITHUB_TOKEN: 'secret' });
  expect(environmentOf('codex', ['GITHUB'])).not.toHaveProperty('GITHUB_TOKEN');
});

function createPrograms(): { root: string; first: string; second: string } {
  const root = createRoot();
  const [first, second] = [join(root, 'first'), join(root, 'second')];
  for (const folder of [first, second]) mkdirSync(folder);
  // Not executable, a folder, and finally a program.
  writeFileSync(join(first, 'codex'), '', { mode: 0o644 });
  mkdirSync(join(first, 'gemini'));
  for (const name of ['codex', 'gemini', 'mine']) {
    writeFileSync(join(second, name), '#!/bin/sh\n');
    chmodSync(join(second, name), 0o755);
  }
  return { root, first, second };
}

test('on PATH the first file that may be executed is the program', () => {
  const { root, first, second } = createPrograms();
  const path = `${first}:${second}`;
  expect(findOnPath('codex', path)).toBe(join(second, 'codex'));
  expect(findOnPath('gemini', path)).toBe(join(second, 'gemini'));
  expect(findOnPath('opencode', path)).toBeNull();
  expect(findOnPath('codex', '')).toBeNull();
  symlinkSync(join(second, 'mine'), join(root, 'link'));
  symlinkSync(join(root, 'gone'), join(root, 'broken'));
  expect(findNamed(join(root, 'link'), '')).toBe(join(root, 'link'));
  expect(findNamed(join(root, 'broken'), '')).toBeNull();
  expect(findNamed('mine', path)).toBe(join(second, 'mine'));
  // A path is not looked up.
  expect(findNamed('./mine', path)).toBeNull();
});

test('a variable overrides the settings, the settings override PATH; a named program has no fallback', () => {
  const { second } = createPrograms();
  const machine = (env: Record<string, string>): Machine => ({
    user: { home: '/', env: { PATH: second, ...env } },
    node: '/node',
    programs: '/dist',
    platform: 'linux-x64',
    pid: 1,
    askTool: [],
  });
  const settings = { ...DEFAULT_SETTINGS, engines: { codex: { bin: join(second, 'mine') } } };
  const codex = findEngine('codex');
  expect(findProgram(codex, machine({}), DEFAULT_SETTINGS)).toEqual({ program: [join(second, 'codex')], by: 'PATH' });
  expect(findProgram(codex, machine({}), settings)).toEqual({
    program: [join(second, 'mine')],
    by: `config.json: ${join(second, 'mine')}`,
  });
  expect(findProgram(codex, machine({ PARLEY_CODEX_BIN: 'gemini' }), settings)).toEqual({
    program: [join(second, 'gemini')],
    by: 'PARLEY_CODEX_BIN=gemini',
  });
  expect(findProgram(codex, machine({ PARLEY_CODEX_BIN: '' }), settings).by).toBe(
    `config.json: ${join(second, 'mine')}`,
  );
  expect(findProgram(codex, machine({ PARLEY_CODEX_BIN: '/nowhere' }), settings)).toEqual({
    program: null,
    by: 'PARLEY_CODEX_BIN=/nowhere',
  });
  expect(findProgram(findEngine('rehearsal'), machine({}), settings)).toEqual({
    program: ['/node', '/dist/rehearsal/main.js'],
    by: 'bundled',
  });
});

test('behind a wrapper of npm the program itself is found, where it is', () => {
  const root = createRoot();
  const [bin, wrapper, native] = [
    join(root, 'bin'),
    join(root, 'lib/@openai/codex/bin/codex.js'),
    join(root, 'lib/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex'),
  ];
  for (const path of [wrapper, native]) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, '#!/bin/sh\n', { mode: 0o755 });
  }
  mkdirSync(bin);
  symlinkSync(wrapper, join(bin, 'codex'));
  const on = (platform: string): Machine => ({
    user: { home: '/', env: { PATH: bin } },
    node: '/node',
    programs: '/dist',
    platform,
    pid: 1,
    askTool: [],
  });
  expect(findProgram(findEngine('codex'), on('linux-x64'), DEFAULT_SETTINGS).program).toEqual([native]);
  expect(findProgram(findEngine('codex'), on('darwin-arm64'), DEFAULT_SETTINGS).program).toEqual([join(bin, 'codex')]);
});
