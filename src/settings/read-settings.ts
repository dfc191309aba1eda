// Reads config.json of a data directory. A file that cannot be used is refused with sentences that name the field, the
// value and the rule.
import { join } from 'node:path';
import { ENGINES } from '../engines/registry.js';
import { OWN_FILE, readTextSync } from '../files/read-file.js';
import { explainZodError } from '../messages/explain-zod-issues.js';
import type { Phrase } from '../kernel/fill-template.js';
import { phrase } from '../messages/phrase.js';
import { isObject, type Json } from '../kernel/json.js';
import { nearestName } from '../kernel/nearest-name.js';
import { clip } from '../kernel/redact.js';
import { explainReason } from '../messages/system-reason.js';
import { refusal } from '../run/request-error.js';
import { valueAt } from './list-settings.js';
import { settingsSchema, type Settings, type WebhookSetting } from './settings.js';

export function readSettings(dataDir: string): Settings {
  return checkSettings(configPath(dataDir), readConfig(dataDir));
}

export function configPath(dataDir: string): string {
  return join(dataDir, 'config.json');
}

// The content of config.json, not checked; an empty object if there is no file.
export function readConfig(dataDir: string): Json {
  const path = configPath(dataDir);
  const text = readIfThere(path);
  return text === null ? {} : parse(path, text);
}

const MAX_NAME_CHARS = 60;
// More problems are counted, not listed, in the message that stops a command.
const MAX_IN_MESSAGE = 5;

// `path` names the file in messages.
export function checkSettings(path: string, value: Json): Settings {
  const problems = findProblems(value);
  if (problems.length === 0) return settingsSchema.parse(value);
  const more = problems.length - MAX_IN_MESSAGE;
  const rest = more > 0 ? [phrase('more_settings', { count: more })] : [];
  throw refusal('INVALID_ARGUMENT.setting', {
    file: path,
    problem: [...problems.slice(0, MAX_IN_MESSAGE), ...rest],
  });
}

// Returns all problems of the content of config.json, each as a sentence.
export function findProblems(value: Json): readonly Phrase[] {
  const { error } = settingsSchema.safeParse(value);
  // Unknown names of settings have their own sentences.
  const issues = (error?.issues ?? []).filter(({ code, path }) => code !== 'unrecognized_keys' || path.length > 0);
  const part = { name: phrase('config'), value, schema: settingsSchema };
  const webhooks = settingsSchema.shape.webhooks.safeParse(valueAt(value, 'webhooks'));
  return [
    ...explainUnknownSettings(value),
    ...withoutRepeats(issues.flatMap((issue) => explainZodError({ issues: [issue] }, part))),
    ...explainUnknownEngines('engines', valueAt(value, 'engines')),
    ...explainUnknownEngines('defaults.model', valueAt(value, 'defaults.model')),
    ...(webhooks.success ? explainWebhooks(webhooks.data) : []),
  ];
}

function withoutRepeats(sentences: readonly Phrase[]): readonly Phrase[] {
  return [...new Map(sentences.map((sentence) => [JSON.stringify(sentence), sentence])).values()];
}

function explainUnknownSettings(value: Json): readonly Phrase[] {
  const names = Object.keys(settingsSchema.shape);
  return namesIn(value)
    .filter((name) => !names.includes(name))
    .map((text) => {
      const name = clip(text, MAX_NAME_CHARS);
      const nearest = nearestName(text, names);
      return nearest === null
        ? phrase('no_setting', { name, names: names.join(', ') })
        : phrase('misspelled_setting', { name, nearest });
    });
}

// The record of engines takes any name, so an unknown engine would be ignored without a message.
function explainUnknownEngines(setting: string, value: Json | undefined): readonly Phrase[] {
  const names = ENGINES.map(({ name }) => name);
  return namesIn(value)
    .filter((name) => !names.includes(name))
    .map((text) => {
      const name = clip(text, MAX_NAME_CHARS);
      const nearest = nearestName(text, names);
      return nearest === null
        ? phrase('no_engine', { setting, name, names: names.join(', ') })
        : phrase('misspelled_engine', { setting, name, nearest });
    });
}

function namesIn(value: Json | undefined): readonly string[] {
  return isObject(value) ? Object.keys(value) : [];
}

// Rules that involve several fields. The address is not repeated, because it may be a secret itself.
function explainWebhooks(webhooks: readonly WebhookSetting[]): readonly Phrase[] {
  const problems = webhooks.flatMap(({ name, url, secret_env: env, secret_file: file }, index) => [
    explainUrl(name, url),
    (env === undefined) === (file === undefined) ? phrase('one_secret', { webhook: name }) : null,
    webhooks.findIndex((other) => other.name === name) === index ? null : phrase('same_webhook', { webhook: name }),
  ]);
  return problems.filter((problem) => problem !== null);
}

function explainUrl(name: string, text: string): Phrase | null {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return phrase('webhook_scheme', { webhook: name });
  const url = new URL(text);
  return url.username === '' && url.password === '' ? null : phrase('webhook_credentials', { webhook: name });
}

function readIfThere(path: string): string | null {
  try {
    return readTextSync(path, OWN_FILE);
  } catch (error) {
    throw refusal('INVALID_ARGUMENT.settings_unreadable', { file: path, reason: explainReason(error) });
  }
}

function parse(path: string, text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw refusal('INVALID_ARGUMENT.settings_not_json', { file: path, reason: (error as Error).message });
  }
}
