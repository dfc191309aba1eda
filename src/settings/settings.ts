// The settings that an operator can write into config.json of a data directory. One schema holds the names, the bounds,
// the defaults, the descriptions and whether a running server applies a change; `npm run generate` writes
// contract/config.schema.json from it. Unknown names are refused, so a typo is reported.
import * as z from 'zod';
import type { Permission } from '../engines/engine.js';
import { ENGINES } from '../engines/registry.js';
import type { ExecutionMode } from '../run/attempt.js';
import { formText } from '../messages/forms.js';
import { DEFAULT_OPTIONS, LONGEST_SEC } from '../run/default-options.js';
import { HOOK_EVENTS, type HookEvent } from '../run/hook-event.js';
import { MAX_MODEL_CHARS, MODEL_PATTERN, MODEL_RULE } from '../run/model-name.js';

const count = z.int().min(1);
const seconds = z.number().positive().max(LONGEST_SEC);
// The message of a form completes the sentence "it takes …".
const variableName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, formText('variable_name'));
const absolutePath = z.string().regex(/^\//, formText('absolute_path'));

const modes = ['auto', 'interactive'] as const satisfies readonly ExecutionMode[];
const permissions = ['read-only', 'workspace-write', 'full'] as const satisfies readonly Permission[];
const engineNames = ENGINES.map(({ name }) => name);

// The setting may be left out, but config.json cannot contain null.
function orNull<T extends z.ZodType>(schema: T) {
  return schema.optional().transform((value) => value ?? null);
}

// Whether a running server applies a changed value by itself. A group declares it for all its settings.
export type Applies = 'at once' | 'after a restart';

function atOnce<T extends z.ZodType>(schema: T): T {
  return schema.meta({ 'x-applies': 'at once' satisfies Applies });
}

function afterRestart<T extends z.ZodType>(schema: T): T {
  return schema.meta({ 'x-applies': 'after a restart' satisfies Applies });
}

// Names what applies while the setting has no value, for the list of settings.
function whenEmpty<T extends z.ZodType>(meaning: string, schema: T): T {
  return schema.meta({ 'x-when-empty': meaning });
}

const webhook = z.strictObject({
  name: z
    .string()
    .regex(/^[\w.-]{1,64}$/, formText('webhook_name'))
    .describe('A unique name.'),
  url: z.string().describe('An http or https URL without credentials.'),
  secret_env: variableName
    .exactOptional()
    .describe('The environment variable that contains the secret. Set this or secret_file.'),
  secret_file: absolutePath.exactOptional().describe('The file that contains the secret.'),
  events: z
    .array(z.enum(HOOK_EVENTS as readonly [HookEvent, ...HookEvent[]]))
    .min(1)
    .refine((events) => new Set(events).size === events.length, formText('each_event_once'))
    .exactOptional()
    .meta({ uniqueItems: true, description: 'The events to send; default: all.' }),
});

export const settingsSchema = z
  .strictObject({
    engines: atOnce(
      z
        .record(
          z.string(),
          z.strictObject({
            bin: whenEmpty('found on PATH', z.string().min(1).exactOptional().describe('The path of the program.')),
          }),
        )
        .default({})
        .meta({
          propertyNames: { enum: engineNames },
          description: 'Programs of engines that are not on PATH, by engine.',
        }),
    ),
    env_passthrough: atOnce(
      z.array(variableName).default([]).describe('Names of further environment variables that engines receive.'),
    ),
    workspace_instructions: atOnce(
      z
        .boolean()
        .default(true)
        .describe('Whether Claude Code gets the CLAUDE.md of the folder in which it works, below the permission full.'),
    ),
    slots: whenEmpty(
      'by the number of cores',
      atOnce(orNull(count).describe('How many turns run at the same time; default: by the number of processor cores.')),
    ),
    queue_limit: atOnce(count.default(10_000).describe('New runs are refused while this many are queued.')),
    recovery: afterRestart(
      z
        .strictObject({
          queued: z
            .enum(['fail', 'requeue'])
            .default('fail')
            .describe('For queued runs: fail them or keep them queued.'),
          running: z
            .enum(['fail', 'retry'])
            .default('fail')
            .describe('For running runs: fail them, or fail them and repeat each once in a new run.'),
        })
        .prefault({})
        .describe('What a restart does with runs that were queued or running.'),
    ),
    defaults: atOnce(
      z
        .strictObject({
          mode: whenEmpty(
            'by the terminal',
            orNull(z.enum(modes)).describe(
              'Whether the agent may ask questions; default: interactive for parley run in a terminal, otherwise auto.',
            ),
          ),
          permission: z.enum(permissions).default('workspace-write').describe('What the agent may do.'),
          model: z
            .record(
              z.string(),
              whenEmpty(
                'chosen by the engine',
                z
                  .string()
                  .max(MAX_MODEL_CHARS)
                  .regex(new RegExp(MODEL_PATTERN), formText('model_name', { rule: MODEL_RULE }))
                  .describe('The model of new runs of this engine.'),
              ),
            )
            .default({})
            .meta({
              propertyNames: { enum: engineNames },
              description: 'The model of new runs, by engine; default: chosen by the engine.',
            }),
          turn_timeout_sec: whenEmpty(
            'no limit',
            seconds
              .nullable()
              .default(DEFAULT_OPTIONS.turn_timeout_sec)
              .describe('The longest turn; null sets no limit.'),
          ),
          idle_timeout_sec: seconds
            .default(DEFAULT_OPTIONS.idle_timeout_sec)
            .describe('The longest time without output while no tool call is known to be running.'),
          tool_timeout_sec: seconds
            .default(DEFAULT_OPTIONS.tool_timeout_sec)
            .describe('The longest time without output while a tool call is running.'),
        })
        .prefault({})
        .describe('Mode, permission, model and limits of new runs that do not set their own.'),
    ),
    silence_notice_sec: atOnce(
      seconds
        .default(DEFAULT_OPTIONS.silence_notice_sec)
        .describe('A running turn that prints nothing for this long is shown as silent and reported to webhooks.'),
    ),
    workspace_roots: whenEmpty(
      'home and start folder',
      atOnce(
        orNull(z.array(absolutePath)).describe(
          'For parley serve: folders in which runs may work; default: the home of the user and the folder in which ' +
            'the server was started.',
        ),
      ),
    ),
    allowed_hosts: atOnce(
      z
        .array(z.string().regex(/^[^\s/]+$/, formText('host_name')))
        .default([])
        .describe('Further names of the server, as in a Host header: with the port, unless it is 80.'),
    ),
    public_url: whenEmpty(
      'the listening address',
      afterRestart(
        orNull(z.string().regex(/^https?:\/\/[^/?#\s]+\/?$/, formText('public_address'))).describe(
          'The address that people use, for links, QR codes, webhooks and Secure cookies; default: the address on ' +
            'which the server listens.',
        ),
      ),
    ),
    trusted_proxies: afterRestart(
      z
        .array(z.string().regex(/^[0-9A-Fa-f:.]+(\/\d{1,3})?$/, formText('ip_or_network')))
        .default([])
        .describe('Addresses or networks (CIDR) of proxies whose X-Forwarded-For header is trusted.'),
    ),
    max_streams: afterRestart(count.default(4000).describe('How many streams may be open.')),
    max_streams_per_token: whenEmpty(
      'a quarter of max_streams',
      afterRestart(
        orNull(count).describe('How many streams of one token may be open; default: a quarter of max_streams.'),
      ),
    ),
    shutdown_grace_sec: atOnce(
      z.number().min(0).max(3600).default(10).describe('How long running turns may continue when the server stops.'),
    ),
    // Their secrets are read once, at the start, and may be in the environment of the process.
    webhooks: afterRestart(z.array(webhook).default([]).describe('Receivers of notifications when runs wait or end.')),
    sessions: afterRestart(
      z
        .strictObject({
          sticky: z
            .boolean()
            .default(false)
            .describe('Engines that cannot resume keep their process while a run waits.'),
          park_after_sec: z
            .number()
            .min(0)
            .max(2_000_000)
            .default(300)
            .describe('How long the process of a waiting run is kept.'),
          max_resident: z.int().min(0).default(8).describe('How many processes of waiting runs are kept.'),
        })
        .prefault({})
        .describe('The processes of resident engines whose run waits.'),
    ),
    cluster: afterRestart(
      z
        .strictObject({
          files: z.enum(['host', 'shared']).default('host').describe('Whether the hosts share their files.'),
          lease_sec: z
            .number()
            .min(1)
            .max(3600)
            .default(15)
            .describe('How long a host that does not respond keeps its turns.'),
          gone_sec: z.number().min(1).default(600).describe('How long a run waits for the host that has its files.'),
          connections: z.int().min(2).max(100).default(10).describe('The most connections of a host to the database.'),
          url: whenEmpty(
            'the loopback address',
            orNull(z.string().regex(/^https?:\/\//, formText('http_address'))).describe(
              'The address at which other hosts and commands reach this server; default: the address on which it ' +
                'listens, if that is a loopback address.',
            ),
          ),
        })
        .prefault({})
        .describe('For hosts that share a PostgreSQL database.'),
    ),
    retention: atOnce(
      z
        .strictObject({
          ended_after_days: whenEmpty(
            'no limit',
            z.number().positive().exactOptional().describe('Delete runs that ended more than this many days ago.'),
          ),
          max_bytes: whenEmpty(
            'no limit',
            count
              .exactOptional()
              .describe('Delete the oldest ended runs until all run folders fit into this many bytes.'),
          ),
        })
        .default({})
        .describe('Which ended runs are deleted: by age, then by the size of all run folders; default: none.'),
    ),
  })
  .meta({ title: 'config.json of Parley' });

type DeepReadonly<T> = T extends readonly (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;

export type Settings = DeepReadonly<z.output<typeof settingsSchema>>;
export type WebhookSetting = Settings['webhooks'][number];

export const DEFAULT_SETTINGS: Settings = settingsSchema.parse({});
