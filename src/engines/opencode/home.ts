// OpenCode keeps everything under the XDG directories; all sessions are in one database, which mentions their ids.
import { basename, join } from 'node:path';
import type { HomeRules } from '../engine.js';

export const opencodeHome: HomeRules = {
  environment: (home) => ({
    XDG_DATA_HOME: join(home, 'data'),
    XDG_CONFIG_HOME: join(home, 'config'),
    XDG_STATE_HOME: join(home, 'state'),
    XDG_CACHE_HOME: join(home, 'cache'),
  }),
  passes: [/^OPENCODE_/, /^(?:ANTHROPIC|OPENAI|OPENROUTER|GEMINI|GOOGLE|GROQ|DEEPSEEK|MISTRAL|XAI)_\w+$/],
  logins: ({ home, env }) => [{ from: join(env['XDG_DATA_HOME'] ?? join(home, '.local', 'share'), 'opencode', 'auth.json'), to: 'data/opencode/auth.json' }],
  sessions: { folder: 'data/opencode', holds: (path, id) => (path.includes(id) ? 'by name' : basename(path).startsWith('opencode.db') && 'if mentioned') },
};
