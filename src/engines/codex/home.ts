// Codex keeps everything under CODEX_HOME; a thread is a rollout file that is named after its id.
import { join } from 'node:path';
import type { HomeRules } from '../engine.js';

export const codexHome: HomeRules = {
  environment: (home) => ({ CODEX_HOME: join(home, '.codex') }),
  passes: [/^OPENAI_/, /^CODEX_(?!HOME$)/],
  logins: ({ home, env }) => [{ from: join(env['CODEX_HOME'] ?? join(home, '.codex'), 'auth.json'), to: '.codex/auth.json' }],
  sessions: { folder: '.codex/sessions', holds: (path, id) => path.toLowerCase().endsWith(`-${id.toLowerCase()}.jsonl`) && 'by name' },
};
