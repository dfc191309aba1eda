// OpenCode keeps everything under the XDG directories; all sessions are in one database, which mentions their ids.
import { formText } from '../../messages/forms.js';
import { basename, join } from 'node:path';
import { asObject, asString } from '../../kernel/json.js';
import { parseCommentedJson } from '../commented-json.js';
import { GIT_FILES, type HomeRules, type User } from '../engine.js';

const dataOf = ({ home, env }: User): string => join(env['XDG_DATA_HOME'] ?? join(home, '.local', 'share'), 'opencode');
const configOf = ({ home, env }: User): string => env['XDG_CONFIG_HOME'] ?? join(home, '.config');
const PROVIDERS = '(?:ANTHROPIC|OPENAI|OPENROUTER|GEMINI|GOOGLE|GROQ|DEEPSEEK|MISTRAL|XAI)';
const FOLDERS = ['agent', 'agents', 'command', 'commands', 'skill', 'skills', 'prompts'];

const CONFIG_FILES = ['', '.opencode/'].flatMap((folder) => [`${folder}opencode.json`, `${folder}opencode.jsonc`]);

export const opencodeHome: HomeRules = {
  environment: (home) => ({
    XDG_DATA_HOME: join(home, 'data'),
    XDG_CONFIG_HOME: join(home, 'config'),
    XDG_STATE_HOME: join(home, 'state'),
    XDG_CACHE_HOME: join(home, 'cache'),
  }),
  // Leaves out settings that would contradict Parley: permissions, and the location of sessions.
  passes: [
    /^OPENCODE_(?!PERMISSION$|CONFIG_CONTENT$|DISABLE_PROJECT_CONFIG$|DB$|TEST_)/,
    new RegExp(`^${PROVIDERS}_\\w+$`),
  ],
  logins: (user) => [{ from: join(dataOf(user), 'auth.json'), to: 'data/opencode/auth.json' }],
  linked: (user) => [{ from: join(dataOf(user), 'mcp-auth.json'), to: 'data/opencode/mcp-auth.json' }],
  keys: [new RegExp(`^${PROVIDERS}_API_KEY$`), /^GOOGLE_GENERATIVE_AI_API_KEY$/, /^OPENCODE_API_KEY$/],
  howToLogIn: 'opencode auth login',
  ownProvider: {
    files: (user) =>
      ['opencode.json', 'opencode.jsonc', 'config.json'].map((name) => join(configOf(user), 'opencode', name)),
    isNamedIn: namesProvider,
  },
  settings: (user) => [
    { from: join(configOf(user), 'opencode'), to: 'config/opencode', only: /^(?:opencode|config)\.jsonc?$|\.md$/ },
    ...FOLDERS.map((name) => ({ from: join(configOf(user), 'opencode', name), to: `config/opencode/${name}` })),
    // Commits keep the user's identity: git reads these variables as well.
    { from: join(configOf(user), 'git'), to: 'config/git', only: GIT_FILES },
  ],
  // JSON may escape a letter as a number, which would hide the word.
  unstoppable: {
    what: formText('plugins'),
    folders: ['.opencode/plugin', '.opencode/plugins'],
    files: CONFIG_FILES,
    mention: /"plugins?"|\\u/,
  },
  sessions: {
    folder: 'data/opencode',
    holds: (path, id) => (path.includes(id) ? 'by name' : basename(path).startsWith('opencode.db') && 'if mentioned'),
  },
};

// Whether the provider of the configured model has options of its own; without a model, whether any provider has.
function namesProvider(text: string): boolean {
  const settings = parseCommentedJson(text);
  const providers = asObject(settings.provider) ?? {};
  const model = asString(settings.model);
  const names = model === undefined ? Object.keys(providers) : [model.split('/')[0] ?? ''];
  return names.some((name) => asObject(asObject(providers[name])?.options) !== undefined);
}
