// Codex keeps everything under CODEX_HOME; a thread is a rollout file that is named after its id.
import { join } from 'node:path';
import type { HomeRules, User } from '../engine.js';

const homeOf = ({ home, env }: User): string => env['CODEX_HOME'] ?? join(home, '.codex');

export const codexHome: HomeRules = {
  environment: (home) => ({ CODEX_HOME: join(home, '.codex') }),
  passes: [/^OPENAI_/, /^CODEX_(?!HOME$)/],
  logins: (user) => [{ from: join(homeOf(user), 'auth.json'), to: '.codex/auth.json' }],
  keys: [/^OPENAI_API_KEY$/, /^CODEX_API_KEY$/],
  howToLogIn: 'codex login',
  settings: (user) => ['config.toml', 'AGENTS.md'].map((name) => ({ from: join(homeOf(user), name), to: `.codex/${name}` })),
  sessions: { folder: '.codex/sessions', holds: (path, id) => path.toLowerCase().endsWith(`-${id.toLowerCase()}.jsonl`) && 'by name' },
};
