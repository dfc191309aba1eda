// Codex trusts a workspace only if its user has said so, not because it is writable; and it sees no key.
import { parse } from 'smol-toml';
import { expect, test } from 'vitest';
import { codexSettings } from '../../src/engines/codex/settings-file.js';

const CWD = '/home/ann/a "b"/work';
const NEEDS = { ask: null, permission: 'workspace-write', cwd: CWD, project: '/home/ann/a "b"' } as const;
const HIDDEN = ['*KEY*', '*TOKEN*', '*SECRET*', '*PASSWORD*'];

function settingsOf(
  config: string | null,
  needs: Parameters<typeof codexSettings>[1] = NEEDS,
): Record<string, unknown> {
  const text = codexSettings(config, needs) ?? '';
  // The next turn produces the same file.
  expect(codexSettings(text, needs)).toBe(text);
  return parse(text);
}

test.each([
  [null, {}],
  ['model = "x" # mine\n', { model: 'x' }],
  // Codex does not look there.
  ['[projects."/home/ann"]\ntrust_level = "trusted"\n', { projects: { '/home/ann': { trust_level: 'trusted' } } }],
  // A heading alone decides nothing.
  ['[projects."/home/ann/a \\"b\\"/work"]\n# trust_level = "trusted"\n', {}],
])('settings %j that say nothing about the folder say that it is not trusted', (config, rest) => {
  const { projects, ...others } = { projects: {}, ...rest };
  expect(settingsOf(config)).toEqual({
    ...others,
    projects: { ...projects, [CWD]: { trust_level: 'untrusted' } },
    shell_environment_policy: { exclude: HIDDEN },
  });
});

test.each([
  '[projects."/home/ann/a \\"b\\"/work"]\ntrust_level = "trusted"\n',
  '[projects.\'/home/ann/a "b"/work\']\ntrust_level = "trusted"\n',
  'model = "x"\n\n[ projects . "/home/ann/a \\"b\\"/work" ] # all of it\ntrust_level = "trusted"\n',
  'projects."/home/ann/a \\"b\\"/work".trust_level = "trusted"\n',
  '[projects]\n"/home/ann/a \\"b\\"/work" = { trust_level = "trusted" }\n',
  '["projects"."/home/ann/a \\"b\\"/work"]\ntrust_level = "trusted"\n',
  'projects = { "/home/ann/a \\"b\\"/work" = { trust_level = "trusted" } }\n',
])('the decision of the user about the folder stays, however it is written: %j', (config) => {
  expect(settingsOf(config)['projects']).toEqual({ [CWD]: { trust_level: 'trusted' } });
});

test('the decision of the user about the repository stays', () => {
  expect(settingsOf('[projects.\'/home/ann/a "b"\']\ntrust_level = "trusted"\n')['projects']).toEqual({
    '/home/ann/a "b"': { trust_level: 'trusted' },
  });
});

test.each(['read-only', 'full'] as const)(
  'with the permission %s no project is added to the settings',
  (permission) => {
    expect(settingsOf('model = "x"\n', { ...NEEDS, permission })['projects']).toEqual({});
  },
);

test('variables that the user keeps out of the environment of commands stay out, and so do keys', () => {
  expect(
    settingsOf('[shell_environment_policy]\ninherit = "core"\nexclude = ["AWS_*", "*KEY*"]\n')[
      'shell_environment_policy'
    ],
  ).toEqual({ inherit: 'core', exclude: ['AWS_*', ...HIDDEN] });
});

test('a file that is not TOML is reported, not replaced', () => {
  expect(codexSettings('model = ', NEEDS)).toBeNull();
});
