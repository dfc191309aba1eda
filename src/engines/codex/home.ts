// Codex keeps everything under CODEX_HOME; a thread is a rollout file that is named after its id.
import { formText } from '../../messages/forms.js';
import { join } from 'node:path';
import { asObject, asString, parseJson } from '../../kernel/json.js';
import type { HomeRules, User } from '../engine.js';
import { codexLoginExpiry } from './login-expiry.js';
import { codexSettings } from './settings-file.js';
import { parseToml, tableOf } from './toml.js';

const homeOf = ({ home, env }: User): string => env['CODEX_HOME'] ?? join(home, '.codex');
// Settings that restrict the agent, and settings that people expect to have.
const FOLDERS = ['rules', 'prompts', 'skills', 'agents'];

export const codexHome: HomeRules = {
  environment: (home) => ({ CODEX_HOME: join(home, '.codex') }),
  passes: [/^OPENAI_/, /^CODEX_(?!HOME$|SQLITE_HOME$)/, /^XDG_CONFIG_HOME$/],
  logins: (user) => [{ from: join(homeOf(user), 'auth.json'), to: '.codex/auth.json' }],
  loginExpiry: codexLoginExpiry,
  linked: (user) => [{ from: join(homeOf(user), '.credentials.json'), to: '.codex/.credentials.json' }],
  keys: [/^CODEX_API_KEY$/],
  howToLogIn: formText('codex_login'),
  ownProvider: { files: (user) => [join(homeOf(user), 'config.toml')], isNamedIn: namesProvider },
  // Codex reads OPENAI_API_KEY only if a provider in its settings names it.
  keyInstead: { of: 'OPENAI_API_KEY', as: 'CODEX_API_KEY' },
  settings: (user) => [
    // Includes the files that config.toml references.
    { from: homeOf(user), to: '.codex', only: /^(?!config\.toml$).*\.(?:toml|md)$/ },
    ...FOLDERS.map((name) => ({ from: join(homeOf(user), name), to: `.codex/${name}` })),
  ],
  turnFile: { path: '.codex/config.toml', from: (user) => join(homeOf(user), 'config.toml'), write: codexSettings },
  sessions: {
    folder: '.codex/sessions',
    holds: (path, id) => path.toLowerCase().endsWith(`-${id.toLowerCase()}.jsonl`) && 'by name',
    basis,
  },
};

// The rollout of a fork does not repeat the history that it started with.
function basis(firstLine: string): string | null {
  const meta = asObject(asObject(parseJson(firstLine))?.payload);
  return asString(asObject(meta?.history_base)?.thread_id) ?? null;
}

// A custom or local provider. One that reads its key from the environment counts only if the key is set.
function namesProvider(text: string, { env }: User): boolean {
  const settings = parseToml(text);
  const name = settings?.['model_provider'];
  if (!settings || typeof name !== 'string' || name === 'openai') return false;
  const provider = tableOf(tableOf(settings['model_providers'])[name]);
  const key = provider['env_key'];
  return provider['requires_openai_auth'] !== true && (typeof key !== 'string' || Boolean(env[key]));
}
