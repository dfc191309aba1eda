// Gemini keeps everything under GEMINI_CLI_HOME/.gemini; a session's file is named after the first eight characters of its id.
import { join } from 'node:path';
import type { HomeRules } from '../engine.js';

const LOGINS = ['oauth_creds.json', 'google_accounts.json', 'gemini-credentials.json', '.env'];

export const geminiHome: HomeRules = {
  environment: (home) => ({ GEMINI_CLI_HOME: home }),
  passes: [/^GEMINI_(?!CLI_HOME$)/, /^GOOGLE_/],
  logins: ({ home, env }) => LOGINS.map((name) => ({ from: join(env['GEMINI_CLI_HOME'] ?? home, '.gemini', name), to: `.gemini/${name}` })),
  sessions: { folder: '.gemini/tmp', holds: (path, id) => path.endsWith(`-${id.slice(0, 8)}.jsonl`) && 'if mentioned' },
};
