// What an operator may set for a data directory, in its config.json. Anything unknown is refused, so that a slip is told.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isObject, type Json } from '../kernel/json.js';
import { createCheck } from '../kernel/validator.js';
import { RequestError } from '../run/request-error.js';

export interface Settings {
  // Engine programs that are not on PATH, by engine.
  readonly engines: Readonly<Record<string, { readonly bin?: string }>>;
  // Names of environment variables that engines get too.
  readonly env_passthrough: readonly string[];
  // How many turns may run at once; null: by the machine.
  readonly slots: number | null;
  readonly queue_limit: number;
  readonly recovery: { readonly queued: 'fail' | 'requeue' };
}

export const DEFAULT_SETTINGS: Settings = { engines: {}, env_passthrough: [], slots: null, queue_limit: 10_000, recovery: { queued: 'fail' } };

const SCHEMA = {
  type: 'object',
  properties: {
    engines: { type: 'object', additionalProperties: { type: 'object', additionalProperties: false, properties: { bin: { type: 'string', minLength: 1 } } } },
    env_passthrough: { type: 'array', items: { type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]*$' } },
    slots: { type: 'integer', minimum: 1 },
    queue_limit: { type: 'integer', minimum: 1 },
    recovery: { type: 'object', additionalProperties: false, required: ['queued'], properties: { queued: { enum: ['fail', 'requeue'] } } },
  },
} as const;

const explain = createCheck(SCHEMA, 'config');

export function readSettings(dataDir: string): Settings {
  const path = join(dataDir, 'config.json');
  const text = readIfThere(path);
  if (text === null) return DEFAULT_SETTINGS;
  const given = parse(path, text);
  const unknown = isObject(given) ? Object.keys(given).find((name) => !Object.hasOwn(SCHEMA.properties, name)) : undefined;
  if (unknown !== undefined) throw new RequestError('INVALID_ARGUMENT', `${path}: there is no setting "${unknown}"; the settings are ${Object.keys(SCHEMA.properties).join(', ')}`);
  const problem = explain(given);
  if (problem !== null) throw new RequestError('INVALID_ARGUMENT', `${path}: ${problem}`);
  return { ...DEFAULT_SETTINGS, ...(given as unknown as Partial<Settings>) };
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw new RequestError('INVALID_ARGUMENT', `${path} cannot be read: ${(error as Error).message}`);
  }
}

function parse(path: string, text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw new RequestError('INVALID_ARGUMENT', `${path} is not JSON: ${(error as Error).message}`);
  }
}
