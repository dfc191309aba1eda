// Gemini keeps everything under GEMINI_CLI_HOME/.gemini; a session's file is named after the first eight characters of
// its id. Its settings file is written before each turn: it contains the question tool.
import { formText } from '../../messages/forms.js';
import { join } from 'node:path';
import { asObject, asString } from '../../kernel/json.js';
import type { HomeRules, User } from '../engine.js';
import { parseCommentedJson } from '../commented-json.js';
import { mendSession } from './mend-session.js';
import { writeSettings } from './settings-file.js';

const folderOf = ({ home, env }: User): string => join(env['GEMINI_CLI_HOME'] ?? home, '.gemini');
const within = (names: readonly string[]) => (user: User) =>
  names.map((name) => ({ from: join(folderOf(user), name), to: `.gemini/${name}` }));
const KEY_LINE = /^[ \t]*(?:export[ \t]+)?(?:GEMINI|GOOGLE)_API_KEY[ \t]*=[ \t]*[^\s#]/m;
// Logins that need neither a file of Gemini's nor a key: cloud credentials, or a gateway.
const OWN_AUTH: ReadonlySet<string> = new Set(['vertex-ai', 'compute-default-credentials', 'cloud-shell', 'gateway']);
const ownEnv = (user: User): string => join(folderOf(user), '.env');

export const geminiHome: HomeRules = {
  environment: (home) => ({ GEMINI_CLI_HOME: home }),
  passes: [/^GEMINI_(?!CLI_HOME$|CLI_TRUST_WORKSPACE$|CLI_SYSTEM_|RESTRICTED_MODE$)/, /^GOOGLE_/, /^XDG_CONFIG_HOME$/],
  logins: (user) => [
    ...within(['oauth_creds.json', 'gemini-credentials.json'])(user),
    // For an untrusted workspace, Gemini looks for it next to the folder instead of in it.
    ...['.gemini/.env', '.env'].map((to) => ({ from: ownEnv(user), to, having: KEY_LINE })),
  ],
  linked: within(['google_accounts.json', 'mcp-oauth-tokens.json']),
  keys: [/^GEMINI_API_KEY$/, /^GOOGLE_API_KEY$/],
  howToLogIn: formText('gemini_login'),
  ownProvider: {
    files: (user) => [join(folderOf(user), 'settings.json')],
    isNamedIn: (text) =>
      OWN_AUTH.has(asString(asObject(asObject(parseCommentedJson(text).security)?.auth)?.selectedType) ?? ''),
  },
  settings: (user) => [
    { from: folderOf(user), to: '.gemini', only: /\.md$/ },
    ...within(['policies', 'commands', 'agents', 'skills'])(user),
  ],
  turnFile: {
    path: '.gemini/settings.json',
    from: (user) => join(folderOf(user), 'settings.json'),
    write: writeSettings,
  },
  mend: mendSession,
  sessions: { folder: '.gemini/tmp', holds: (path, id) => path.endsWith(`-${id.slice(0, 8)}.jsonl`) && 'if mentioned' },
};
