// The request that creates a run. One schema serves every caller: the HTTP API and its OpenAPI document, the commands
// and the library. It is checked as a whole before anything else happens.
import * as z from 'zod';
import type { Permission } from '../engines/engine.js';
import { createZodCheck } from '../messages/explain-zod-issues.js';
import { formText } from '../messages/forms.js';
import { phrase } from '../messages/phrase.js';
import type { JsonObject } from '../kernel/json.js';
import type { ExecutionMode } from '../run/attempt.js';
import { DEFAULT_OPTIONS } from '../run/default-options.js';
import { checkModel, MAX_MODEL_CHARS, MODEL_PATTERN, MODEL_RULE } from '../run/model-name.js';
import { refusal } from '../run/request-error.js';
import { explainBounds } from '../schema-check/schema-bounds.js';
import { EXECUTION_MODES, PERMISSIONS } from '../store/stored-shapes.js';

/** The request that creates a run. */
export interface CreateRunRequest {
  /** The engine that runs the agent, for instance `codex`. */
  readonly engine: string;
  /** What the agent should do. */
  readonly prompt: string;
  /** `interactive`: the agent may ask questions. `auto`, the default: it runs unattended. */
  readonly execution_mode?: ExecutionMode;
  /** The folder in which the agent works, within `workspace_roots`; by default a new, empty folder. */
  readonly cwd?: string;
  /** The model; by default the engine's own choice. */
  readonly model?: string;
  /** What the agent may do without asking; by default `workspace-write`. */
  readonly permission?: Permission;
  /** A JSON Schema that the result must match. */
  readonly output_schema?: JsonObject;
  /** Time limits and other options of the run. */
  readonly runtime_options?: JsonObject;
  /** Your own labels, by which runs are listed. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Idempotency key: repeating the request returns the same run. */
  readonly request_id?: string;
  /** Creates the run even if the engine is known to be missing or logged out. */
  readonly force?: boolean;
}

const MAX_LABELS = 100;

// A store truncates a text at a NUL character, so two different texts would become equal.
const textWithoutNul = z.string().regex(/^[^\u0000]*$/, formText('text_without_nul'));
export const shortName = textWithoutNul.min(1).max(200);
// The values are checked elsewhere: runtime options by their own schema, JSON Schemas in worker threads.
const anyObject = z.record(z.string(), z.unknown());

// Refuses unknown members, so that a typo is reported.
export const createRunRequest = z.strictObject({
  engine: shortName,
  prompt: z.string().regex(/\S/, formText('text')).max(10_000_000),
  execution_mode: z
    .enum(EXECUTION_MODES)
    .optional()
    .meta({
      description:
        'interactive: the agent may ask questions. auto: it runs unattended. Default: defaults.mode of the settings, ' +
        'else auto.',
    }),
  cwd: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'A folder within workspace_roots; without it, the run gets a new empty folder.' }),
  model: z
    .string()
    .max(MAX_MODEL_CHARS)
    .regex(new RegExp(MODEL_PATTERN), formText('model_name', { rule: MODEL_RULE }))
    .optional()
    .meta({ description: 'Default: defaults.model of the settings for this engine, else chosen by the engine.' }),
  permission: z.enum(PERMISSIONS).optional().meta({
    description: 'What the agent may do. Default: defaults.permission of the settings, else workspace-write.',
  }),
  output_schema: z.union([anyObject, z.boolean()]).optional(),
  runtime_options: anyObject
    .optional()
    .meta({ description: `${Object.keys(DEFAULT_OPTIONS).join(', ')}: docs/reference/cli.md explains them.` }),
  labels: z
    .record(textWithoutNul.min(1).max(200), textWithoutNul.max(2000))
    .check(({ value, issues }) => {
      if (Object.keys(value).length > MAX_LABELS)
        issues.push({ code: 'too_big', origin: 'object', maximum: MAX_LABELS, inclusive: true, input: value });
    })
    .optional()
    .meta({ maxProperties: MAX_LABELS }),
  request_id: shortName.optional().meta({
    description:
      'Idempotency key (or the header Idempotency-Key): repeating the same body with it returns the same run.',
  }),
  force: z.boolean().optional().meta({
    description:
      'true: create the run although its engine is missing or logged out (ENGINE_NOT_INSTALLED, ENGINE_LOGGED_OUT).',
  }),
} satisfies Record<keyof CreateRunRequest, z.ZodType>);

const explain = createZodCheck(createRunRequest, phrase('request'));

export function checkRequest(request: CreateRunRequest): void {
  if (typeof request.model === 'string') checkModel(request.model);
  const problem = explain(request satisfies z.input<typeof createRunRequest>);
  if (problem !== null) throw refusal('INVALID_ARGUMENT.request', { problem });
  // Checked before the digest of the request is computed, because that recurses into the schema.
  const bounds = request.output_schema === undefined ? null : explainBounds(request.output_schema);
  if (bounds !== null) throw refusal('INVALID_ARGUMENT.output_schema', { problem: bounds });
}
