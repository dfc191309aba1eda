// OpenCode keeps everything under the XDG directories; all sessions are in one database, which mentions their ids.
import { basename, join } from 'node:path';
import type { HomeRules, User } from '../engine.js';

const dataOf = ({ home, env }: User): string => join(env['XDG_DATA_HOME'] ?? join(home, '.local', 'share'), 'opencode');
const configOf = ({ home, env }: User): string => join(env['XDG_CONFIG_HOME'] ?? join(home, '.config'), 'opencode');
const KEYS = /^(?:ANTHROPIC|OPENAI|OPENROUTER|GEMINI|GOOGLE|GROQ|DEEPSEEK|MISTRAL|XAI)_\w+$/;

export const opencodeHome: HomeRules = {
  environment: (home) => ({
    XDG_DATA_HOME: join(home, 'data'),
    XDG_CONFIG_HOME: join(home, 'config'),
    XDG_STATE_HOME: join(home, 'state'),
    XDG_CACHE_HOME: join(home, 'cache'),
  }),
  passes: [/^OPENCODE_/, KEYS],
  logins: (user) => [{ from: join(dataOf(user), 'auth.json'), to: 'data/opencode/auth.json' }],
  keys: [KEYS],
  howToLogIn: 'opencode auth login',
  settings: (user) => ['opencode.json', 'opencode.jsonc', 'AGENTS.md'].map((name) => ({ from: join(configOf(user), name), to: `config/opencode/${name}` })),
  sessions: { folder: 'data/opencode', holds: (path, id) => (path.includes(id) ? 'by name' : basename(path).startsWith('opencode.db') && 'if mentioned') },
};
