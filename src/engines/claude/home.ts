// Claude Code keeps its sessions and settings in CLAUDE_CONFIG_DIR, and logs and caches below HOME; a session is a file
// that is named after its id.
import { join } from 'node:path';
import { asObject, asString, parseJson } from '../../kernel/json.js';
import { formText } from '../../messages/forms.js';
import { GIT_FILES, type HomeRules, type User } from '../engine.js';
import { claudeSettings } from './settings-file.js';

const folderOf = ({ home, env }: User): string => env['CLAUDE_CONFIG_DIR'] ?? join(home, '.claude');
const LOGIN_FOLDER = 'CLAUDE_SECURESTORAGE_CONFIG_DIR';
const FOLDERS = ['agents', 'commands', 'output-styles', 'rules', 'skills'];
const KEYS = [/^ANTHROPIC_(?:API_KEY|AUTH_TOKEN)$/, /^CLAUDE_CODE_OAUTH_TOKEN$/];
// Services of other clouds have their own logins.
const OTHER_SERVICE = /^CLAUDE_CODE_USE_(?:BEDROCK|VERTEX|FOUNDRY)$/;

export const claudeHome: HomeRules = {
  environment: (home) => ({
    HOME: home,
    CLAUDE_CONFIG_DIR: join(home, '.claude'),
    CLAUDE_CODE_TMPDIR: join(home, 'tmp'),
  }),
  // A list, because Claude Code sets more of these for the programs that it starts, and Parley may be one of them.
  passes: [
    /^ANTHROPIC_/,
    /^CLAUDE_CODE_(?:OAUTH_TOKEN|USE_\w+|SKIP_\w+_AUTH|MAX_OUTPUT_TOKENS|EFFORT_LEVEL|API_KEY_HELPER_TTL_MS)$/,
    /^CLAUDE_CODE_CLIENT_(?:CERT|KEY|KEY_PASSPHRASE)$/,
  ],
  logins: (user) => [{ from: join(loginFolder(user), '.credentials.json'), to: '.claude/.credentials.json' }],
  // Of several processes with an expired login, one renews it; the lock for that is in this folder too.
  loginFolder: { variable: LOGIN_FOLDER, of: loginFolder },
  keys: [...KEYS, OTHER_SERVICE],
  howToLogIn: formText('claude_login'),
  ownProvider: { files: (user) => [join(folderOf(user), 'settings.json')], isNamedIn: namesProvider },
  settings: (user) => [
    { from: folderOf(user), to: '.claude', only: /\.md$/ },
    ...FOLDERS.map((name) => ({ from: join(folderOf(user), name), to: `.claude/${name}` })),
    // HOME is private here, but commits are still the user's.
    { from: join(user.home, '.gitconfig'), to: '.gitconfig' },
    {
      from: join(user.env['XDG_CONFIG_HOME'] ?? join(user.home, '.config'), 'git'),
      to: '.config/git',
      only: GIT_FILES,
    },
  ],
  turnFile: {
    path: '.claude/settings.json',
    from: (user) => join(folderOf(user), 'settings.json'),
    write: claudeSettings,
  },
  instructions: 'CLAUDE.md',
  sessions: { folder: '.claude/projects', holds: (path, id) => path.includes(id) && 'by name' },
};

// Empty, the variable means the folder in the home of the user.
function loginFolder(user: User): string {
  const named = user.env[LOGIN_FOLDER];
  return named === undefined ? folderOf(user) : named || join(user.home, '.claude');
}

// A helper that prints a key, or a key or another service in the variables of the settings.
function namesProvider(text: string): boolean {
  const settings = asObject(parseJson(text));
  const names = Object.keys(asObject(settings?.env) ?? {});
  return (
    asString(settings?.apiKeyHelper) !== undefined ||
    names.some((name) => OTHER_SERVICE.test(name) || KEYS.some((key) => key.test(name)))
  );
}
