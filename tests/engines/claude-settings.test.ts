// The settings that a run of Claude Code gets: the user's own, without what a read-only run must not have.
import { expect, test } from 'vitest';
import { claudeSettings } from '../../src/engines/claude/settings-file.js';
import type { Permission } from '../../src/engines/engine.js';

const OWN = {
  model: 'opus',
  hooks: { PreToolUse: [] },
  permissions: {
    allow: ['Bash'],
    deny: ['WebFetch'],
    ask: ['Read'],
    additionalDirectories: ['/'],
    defaultMode: 'plan',
  },
  sandbox: { enabled: true, autoAllowBashIfSandboxed: true },
};

function write(current: string | null, permission: Permission): unknown {
  const text = claudeSettings(current, { ask: null, permission, cwd: '/work', project: '/work' });
  return text === null ? null : JSON.parse(text);
}

test('sessions are kept for as long as a run may wait', () => {
  for (const current of [null, '{}', '{"cleanupPeriodDays":1}'])
    expect(write(current, 'full')).toEqual({ cleanupPeriodDays: 36_500 });
});

test.each(['workspace-write', 'full'] as const)('with %s everything else stays as the user wrote it', (permission) => {
  expect(write(JSON.stringify(OWN), permission)).toEqual({ ...OWN, cleanupPeriodDays: 36_500 });
});

// Parley's own hook has to be called, at its address and with its token.
test.each(['read-only', 'workspace-write'] as const)('with %s nothing keeps a hook from being called', (permission) => {
  const off = {
    ...OWN,
    disableAllHooks: true,
    allowedHttpHookUrls: ['https://hooks.example/*'],
    httpHookAllowedEnvVars: ['A'],
  };
  const settings = write(JSON.stringify(off), permission);
  expect(settings).not.toHaveProperty('disableAllHooks');
  expect(settings).not.toHaveProperty('allowedHttpHookUrls');
  expect(settings).not.toHaveProperty('httpHookAllowedEnvVars');
  // The user's own stay off.
  expect(settings).not.toHaveProperty('hooks');
  expect(write(JSON.stringify(off), 'full')).toMatchObject({ disableAllHooks: true });
});

test('a read-only run loses what would let a call pass, and keeps what denies one', () => {
  expect(write(JSON.stringify(OWN), 'read-only')).toEqual({
    model: 'opus',
    permissions: { deny: ['WebFetch'], ask: ['Read'], defaultMode: 'plan' },
    sandbox: { enabled: true, autoAllowBashIfSandboxed: false },
    cleanupPeriodDays: 36_500,
  });
  expect(write('{"permissions":1,"sandbox":"x"}', 'read-only')).toEqual({ permissions: {}, cleanupPeriodDays: 36_500 });
});

test.each(['', 'no JSON', '[]', '"text"', '{"a":'])('%j is no settings file', (text) => {
  expect(write(text, 'full')).toBeNull();
});
