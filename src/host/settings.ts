// What an operator may set for a data directory, in its config.json. Anything unknown is refused, so that a slip is
// told.
import { join } from 'node:path';
import { ENGINES } from '../engines/registry.js';
import { OWN_FILE, readTextSync } from '../files/read-file.js';
import { isObject, type Json } from '../kernel/json.js';
import { nearestName } from '../kernel/nearest-name.js';
import { createCheck } from '../kernel/validator.js';
import type { HookEvent } from '../journal/deps.js';
import { RequestError } from '../run/request-error.js';
import { TERMINAL_STATES } from '../run/statechart.js';
import { reasonOf } from '../kernel/system-error.js';

export interface Settings {
  // Engine programs that are not on PATH, by engine.
  readonly engines: Readonly<Record<string, { readonly bin?: string }>>;
  // Names of environment variables that engines get too.
  readonly env_passthrough: readonly string[];
  // How many turns may run at once; null: by the machine.
  readonly slots: number | null;
  readonly queue_limit: number;
  // What happens at a restart to runs that were queued or running.
  readonly recovery: { readonly queued: 'fail' | 'requeue'; readonly running: 'fail' | 'retry' };
  // Limits of one turn, for runs that do not set their own; a null turn_timeout_sec sets no limit.
  readonly defaults: {
    readonly turn_timeout_sec: number | null;
    readonly idle_timeout_sec: number;
    readonly tool_timeout_sec: number;
  };
  // A running turn that prints nothing for this long is shown as silent and reported to webhooks.
  readonly silence_notice_sec: number;
  // For parley serve. Where runs may work that name a folder; null: the user's home and the folder it was started in.
  readonly workspace_roots: readonly string[] | null;
  // Names under which it is reached besides its own address, as they stand in a Host header (with the port, if it is
  // not 80).
  readonly allowed_hosts: readonly string[];
  // The address that people use to reach the server, for links, QR codes, webhooks and Secure cookies; null: the
  // address it listens on.
  readonly public_url: string | null;
  // Addresses or networks (CIDR) of proxies whose X-Forwarded-For header is believed.
  readonly trusted_proxies: readonly string[];
  readonly max_streams: number;
  // How many of them one token may hold; null: a quarter of max_streams.
  readonly max_streams_per_token: number | null;
  // How long turns may go on when it is stopped.
  readonly shutdown_grace_sec: number;
  // Who is told when runs wait or end.
  readonly webhooks: readonly WebhookSetting[];
  // The processes of runs that wait: how long and how many are kept, and whether engines that cannot resume may keep
  // theirs.
  readonly sessions: { readonly sticky: boolean; readonly park_after_sec: number; readonly max_resident: number };
  // For hosts that share a PostgreSQL database: whether they see the same files, how long a host that is not heard of
  // keeps its turns, how long a run waits for a host that has its files, and how many connections each keeps at most.
  readonly cluster: {
    readonly files: 'host' | 'shared';
    readonly lease_sec: number;
    readonly gone_sec: number;
    readonly connections: number;
    readonly url: string | null;
  };
  // What is deleted by itself; nothing, unless it is said.
  readonly retention: RetentionSetting;
}

export interface WebhookSetting {
  readonly name: string;
  readonly url: string;
  // Where the secret is: exactly one of them.
  readonly secret_env?: string;
  readonly secret_file?: string;
  readonly events?: readonly HookEvent[];
}

export interface RetentionSetting {
  readonly ended_after_days?: number;
  readonly max_bytes?: number;
}

export const WEBHOOK_EVENTS: readonly HookEvent[] = ['waiting_user', ...TERMINAL_STATES, 'silent'];

export const DEFAULT_SETTINGS: Settings = {
  engines: {},
  env_passthrough: [],
  slots: null,
  queue_limit: 10_000,
  recovery: { queued: 'fail', running: 'fail' },
  defaults: { turn_timeout_sec: null, idle_timeout_sec: 1800, tool_timeout_sec: 4 * 3600 },
  silence_notice_sec: 1800,
  workspace_roots: null,
  allowed_hosts: [],
  public_url: null,
  trusted_proxies: [],
  max_streams: 4000,
  max_streams_per_token: null,
  shutdown_grace_sec: 10,
  webhooks: [],
  sessions: { sticky: false, park_after_sec: 300, max_resident: 8 },
  cluster: { files: 'host', lease_sec: 15, gone_sec: 600, connections: 10, url: null },
  retention: {},
};

// The descriptions of patterns complete "it takes …" in messages.
const VARIABLE = {
  type: 'string',
  pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
  description: 'the name of an environment variable',
} as const;
const ABSOLUTE = { type: 'string', pattern: '^/', description: 'an absolute path' } as const;

export const SETTINGS_SCHEMA = {
  type: 'object',
  properties: {
    engines: {
      type: 'object',
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        properties: { bin: { type: 'string', minLength: 1 } },
      },
    },
    env_passthrough: { type: 'array', items: VARIABLE },
    slots: { type: 'integer', minimum: 1 },
    queue_limit: { type: 'integer', minimum: 1 },
    recovery: {
      type: 'object',
      additionalProperties: false,
      properties: { queued: { enum: ['fail', 'requeue'] }, running: { enum: ['fail', 'retry'] } },
    },
    defaults: {
      type: 'object',
      additionalProperties: false,
      properties: {
        turn_timeout_sec: { type: ['number', 'null'], exclusiveMinimum: 0, maximum: 3_153_600_000 },
        idle_timeout_sec: { type: 'number', exclusiveMinimum: 0, maximum: 3_153_600_000 },
        tool_timeout_sec: { type: 'number', exclusiveMinimum: 0, maximum: 3_153_600_000 },
      },
    },
    silence_notice_sec: { type: 'number', exclusiveMinimum: 0, maximum: 3_153_600_000 },
    workspace_roots: { type: 'array', items: ABSOLUTE },
    allowed_hosts: {
      type: 'array',
      items: { type: 'string', pattern: '^[^\\s/]+$', description: 'a host name as in a Host header, without a path' },
    },
    public_url: {
      type: 'string',
      pattern: '^https?://[^/?#\\s]+/?$',
      description: 'an address such as https://parley.example.org, without a path',
    },
    trusted_proxies: {
      type: 'array',
      items: {
        type: 'string',
        pattern: '^[0-9A-Fa-f:.]+(/\\d{1,3})?$',
        description: 'an IP address or a network such as 10.0.0.0/8',
      },
    },
    max_streams: { type: 'integer', minimum: 1 },
    max_streams_per_token: { type: 'integer', minimum: 1 },
    shutdown_grace_sec: { type: 'number', minimum: 0, maximum: 3600 },
    webhooks: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['name', 'url'],
        properties: {
          name: { type: 'string', pattern: '^[\\w.-]{1,64}$', description: '1 to 64 letters, digits and . _ -' },
          url: { type: 'string' },
          secret_env: VARIABLE,
          secret_file: ABSOLUTE,
          events: { type: 'array', minItems: 1, uniqueItems: true, items: { enum: WEBHOOK_EVENTS } },
        },
      },
    },
    sessions: {
      type: 'object',
      additionalProperties: false,
      properties: {
        sticky: { type: 'boolean' },
        park_after_sec: { type: 'number', minimum: 0, maximum: 2_000_000 },
        max_resident: { type: 'integer', minimum: 0 },
      },
    },
    cluster: {
      type: 'object',
      additionalProperties: false,
      properties: {
        files: { enum: ['host', 'shared'] },
        lease_sec: { type: 'number', minimum: 1, maximum: 3600 },
        gone_sec: { type: 'number', minimum: 1 },
        connections: { type: 'integer', minimum: 2, maximum: 100 },
        url: { type: 'string', pattern: '^https?://', description: 'an address that begins with http:// or https://' },
      },
    },
    retention: {
      type: 'object',
      additionalProperties: false,
      properties: {
        ended_after_days: { type: 'number', exclusiveMinimum: 0 },
        max_bytes: { type: 'integer', minimum: 1 },
      },
    },
  },
} as const;

const explain = createCheck(SETTINGS_SCHEMA, 'config');

export function readSettings(dataDir: string): Settings {
  const path = join(dataDir, 'config.json');
  const text = readIfThere(path);
  if (text === null) return DEFAULT_SETTINGS;
  const given = parse(path, text);
  const unknown = isObject(given)
    ? Object.keys(given).find((name) => !Object.hasOwn(SETTINGS_SCHEMA.properties, name))
    : undefined;
  if (unknown !== undefined) throw unknownSetting(path, unknown);
  const problem =
    explain(given) ??
    explainEngines((given as { engines?: object }).engines ?? {}) ??
    explainWebhooks((given as { webhooks?: readonly WebhookSetting[] }).webhooks ?? []);
  if (problem !== null) throw new RequestError('INVALID_ARGUMENT', `${path}: ${problem}`);
  const { sessions, cluster, recovery, defaults, ...others } = given as unknown as Partial<Settings>;
  return {
    ...DEFAULT_SETTINGS,
    ...others,
    recovery: { ...DEFAULT_SETTINGS.recovery, ...recovery },
    defaults: { ...DEFAULT_SETTINGS.defaults, ...defaults },
    sessions: { ...DEFAULT_SETTINGS.sessions, ...sessions },
    cluster: { ...DEFAULT_SETTINGS.cluster, ...cluster },
  };
}

function unknownSetting(path: string, name: string): RequestError {
  const names = Object.keys(SETTINGS_SCHEMA.properties);
  const near = nearestName(name, names);
  const hint = near === null ? '' : `did you mean "${near}"? `;
  const known = `${hint}the settings are ${names.join(', ')}`;
  return new RequestError('INVALID_ARGUMENT', `${path}: there is no setting "${name}"; ${known}`);
}

// An engine that does not exist would be ignored in silence.
function explainEngines(engines: object): string | null {
  const names = ENGINES.map(({ name }) => name);
  const unknown = Object.keys(engines).find((name) => !names.includes(name));
  if (unknown === undefined) return null;
  const closest = nearestName(unknown, names);
  return (
    `engines: there is no engine "${unknown}"${closest === null ? '' : `; did you mean "${closest}"?`} The ` +
    `engines are ${names.join(', ')}.`
  );
}

// What a schema cannot say. An address is not repeated: it may be a secret itself.
function explainWebhooks(webhooks: readonly WebhookSetting[]): string | null {
  for (const [index, { name, url, secret_env: env, secret_file: file }] of webhooks.entries()) {
    const problem =
      explainUrl(url) ??
      ((env === undefined) === (file === undefined)
        ? 'exactly one of secret_env and secret_file says where its secret is'
        : null);
    if (problem !== null) return `webhook "${name}": ${problem}`;
    if (webhooks.findIndex((other) => other.name === name) !== index) return `two webhooks are called "${name}"`;
  }
  return null;
}

function explainUrl(text: string): string | null {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return 'its url does not begin with http:// or https://';
  const url = new URL(text);
  return url.username === '' && url.password === ''
    ? null
    : 'its url has a user or a password in it; put the secret into secret_env or secret_file';
}

function readIfThere(path: string): string | null {
  try {
    return readTextSync(path, OWN_FILE);
  } catch (error) {
    throw new RequestError('INVALID_ARGUMENT', `${path} cannot be read: ${reasonOf(error)}`);
  }
}

function parse(path: string, text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw new RequestError(
      'INVALID_ARGUMENT',
      `${path} is not JSON. Fix it, or delete it to use the defaults. (${(error as Error).message})`,
    );
  }
}
