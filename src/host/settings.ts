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
  // For parley serve. Where runs may work that name a folder; null: the user's home and the folder it was started in.
  readonly workspace_roots: readonly string[] | null;
  // Names under which it is reached besides its own address, as they stand in a Host header (with the port, if it is not 80).
  readonly allowed_hosts: readonly string[];
  readonly max_streams: number;
  // How long turns may go on when it is stopped.
  readonly shutdown_grace_sec: number;
}

export const DEFAULT_SETTINGS: Settings = { engines: {}, env_passthrough: [], slots: null, queue_limit: 10_000, recovery: { queued: 'fail' }, workspace_roots: null, allowed_hosts: [], max_streams: 4000, shutdown_grace_sec: 10 };

const SCHEMA = {
  type: 'object',
  properties: {
    engines: { type: 'object', additionalProperties: { type: 'object', additionalProperties: false, properties: { bin: { type: 'string', minLength: 1 } } } },
    env_passthrough: { type: 'array', items: { type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]*$' } },
    slots: { type: 'integer', minimum: 1 },
    queue_limit: { type: 'integer', minimum: 1 },
    workspace_roots: { type: 'array', items: { type: 'string', pattern: '^/' } },
    allowed_hosts: { type: 'array', items: { type: 'string', pattern: '^[^\\s/]+$' } },
    max_streams: { type: 'integer', minimum: 1 },
    shutdown_grace_sec: { type: 'number', minimum: 0, maximum: 3600 },
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
