// Gemini keeps everything under GEMINI_CLI_HOME/.gemini; a session's file is named after the first eight characters of its id.
// Its settings file is written before each turn: the question tool stands in it.
import { join } from 'node:path';
import { asObject, isObject, parseJson, type JsonObject } from '../../kernel/json.js';
import type { HomeRules, User } from '../engine.js';
import { mendSession } from './mend-session.js';

const LOGINS = ['oauth_creds.json', 'google_accounts.json', 'gemini-credentials.json', '.env'];
const folderOf = ({ home, env }: User): string => join(env['GEMINI_CLI_HOME'] ?? home, '.gemini');

export const geminiHome: HomeRules = {
  environment: (home) => ({ GEMINI_CLI_HOME: home }),
  passes: [/^GEMINI_(?!CLI_HOME$)/, /^GOOGLE_/],
  logins: (user) => LOGINS.map((name) => ({ from: join(folderOf(user), name), to: `.gemini/${name}` })),
  keys: [/^GEMINI_API_KEY$/, /^GOOGLE_API_KEY$/, /^GOOGLE_GENAI_USE_VERTEXAI$/],
  howToLogIn: 'start gemini once and log in, or set GEMINI_API_KEY',
  settings: (user) => ['settings.json', 'GEMINI.md'].map((name) => ({ from: join(folderOf(user), name), to: `.gemini/${name}` })),
  turnFile: { path: '.gemini/settings.json', write: (found, ask) => `${JSON.stringify(settingsFor(parseJson(found ?? '{}'), ask), null, 2)}\n` },
  mend: mendSession,
  sessions: { folder: '.gemini/tmp', holds: (path, id) => path.endsWith(`-${id.slice(0, 8)}.jsonl`) && 'if mentioned' },
};

// Over the user's own: sessions are kept (Gemini deletes them otherwise, also one that was just resumed), a failing service is
// tried a few times and not for minutes, and the question tool is trusted, else it is not offered.
function settingsFor(found: unknown, ask: readonly string[] | null): JsonObject {
  const settings = isObject(found) ? found : {};
  const { parley: _old, ...servers } = asObject(settings.mcpServers) ?? {};
  const [command = '', ...args] = ask ?? [];
  return {
    ...settings,
    general: { ...asObject(settings.general), enableAutoUpdate: false, enableAutoUpdateNotification: false, maxAttempts: 3, sessionRetention: { enabled: false } },
    mcpServers: ask === null ? servers : { ...servers, parley: { command, args, trust: true } },
  };
}
