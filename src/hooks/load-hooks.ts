// The webhooks of the settings with their secrets. A secret is read once, at the start, and is never stored or logged.
import { OWN_FILE, readTextSync } from '../files/read-file.js';
import { HOOK_EVENTS } from '../run/hook-event.js';
import type { WebhookSetting } from '../settings/settings.js';
import type { Hook } from '../journal/deps.js';
import { refusal, type RequestError } from '../run/request-error.js';
import { phrase } from '../messages/phrase.js';
import type { Phrase } from '../kernel/fill-template.js';
import { explainReason } from '../messages/system-reason.js';

export interface SendingHook extends Hook {
  readonly url: string;
  readonly key: Buffer;
}

// A short key could be guessed, and its signature would prove nothing.
const LEAST_BYTES = 16;
const PREFIX = 'whsec_';

// The hooks without their secrets, for processes that store deliveries but do not send them.
export function namedHooks(settings: readonly WebhookSetting[]): Hook[] {
  return settings.map(({ name, events = HOOK_EVENTS }) => ({ name, events }));
}

export function loadHooks(
  settings: readonly WebhookSetting[],
  env: Readonly<Record<string, string | undefined>>,
): SendingHook[] {
  return settings.map((setting) => ({
    name: setting.name,
    events: setting.events ?? HOOK_EVENTS,
    url: setting.url,
    key: loadKey(setting, env),
  }));
}

function loadKey(
  { name, secret_env: variable, secret_file: file = '' }: WebhookSetting,
  env: Readonly<Record<string, string | undefined>>,
): Buffer {
  const secret = variable === undefined ? readSecret(name, file) : (env[variable] ?? '');
  const place = variable === undefined ? phrase('the_file', { file }) : phrase('the_variable', { name: variable });
  if (secret === '') throw refuse(name, phrase('no_secret', { place }));
  const key = toKey(secret);
  if (key === null) throw refuse(name, phrase('secret_not_base64', { prefix: PREFIX, place }));
  if (key.length < LEAST_BYTES) throw refuse(name, phrase('secret_short', { place, least: LEAST_BYTES }));
  return key;
}

function readSecret(name: string, path: string): string {
  let text: string | null;
  try {
    text = readTextSync(path, OWN_FILE);
  } catch (error) {
    throw refuse(name, phrase('secret_unreadable', { reason: explainReason(error) }));
  }
  if (text === null) throw refuse(name, phrase('secret_unreadable', { reason: phrase('no_file', { file: path }) }));
  return text.trim();
}

// Standard Webhooks write a key as base64 after a prefix; any other text is the key itself.
function toKey(secret: string): Buffer | null {
  if (!secret.startsWith(PREFIX)) return Buffer.from(secret);
  const text = secret.slice(PREFIX.length);
  return /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : null;
}

function refuse(name: string, why: Phrase): RequestError {
  return refusal('INVALID_ARGUMENT.webhook', { webhook: name, problem: why });
}
