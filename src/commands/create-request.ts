// What may be asked for in a new run, checked as a whole before anything else is looked at.
import type { Permission } from '../engines/engine.js';
import type { JsonObject } from '../kernel/json.js';
import { createCheck } from '../kernel/validator.js';
import type { ExecutionMode } from '../run/attempt.js';
import { explainBounds } from '../schema-check/schema-bounds.js';
import { checkModel, MAX_MODEL_CHARS, MODEL_PATTERN } from '../run/model-name.js';
import { RequestError } from '../run/request-error.js';

export interface CreateRunRequest {
  readonly engine: string;
  readonly prompt: string;
  readonly execution_mode?: ExecutionMode;
  readonly cwd?: string;
  readonly model?: string;
  readonly permission?: Permission;
  readonly output_schema?: JsonObject;
  readonly runtime_options?: JsonObject;
  readonly labels?: Readonly<Record<string, string>>;
  // The client's key: the same key with the same body gives the same run.
  readonly request_id?: string;
  // Creates it also for an engine that is known to be missing or logged out.
  readonly force?: boolean;
}

// Without NUL: the store would cut it off there, and take two for one.
const WHOLE = { pattern: '^[^\\u0000]*$', description: 'a text without NUL characters' };
const NAME = { type: 'string', minLength: 1, maxLength: 200, ...WHOLE };

// Closed: a slip in a name is told instead of being passed over.
export const REQUEST_SCHEMA: JsonObject = {
  type: 'object',
  additionalProperties: false,
  required: ['engine', 'prompt'],
  properties: {
    engine: NAME,
    prompt: { type: 'string', pattern: '\\S', maxLength: 10_000_000 },
    execution_mode: { enum: ['auto', 'interactive'] },
    cwd: { type: 'string', minLength: 1 },
    model: { type: 'string', maxLength: MAX_MODEL_CHARS, pattern: MODEL_PATTERN },
    permission: { enum: ['read-only', 'workspace-write', 'full'] },
    output_schema: { type: ['object', 'boolean'] },
    runtime_options: { type: 'object' },
    labels: {
      type: 'object',
      maxProperties: 100,
      propertyNames: { minLength: 1, maxLength: 200, ...WHOLE },
      additionalProperties: { type: 'string', maxLength: 2000, ...WHOLE },
    },
    request_id: NAME,
    force: { type: 'boolean' },
  },
};

const explain = createCheck(REQUEST_SCHEMA, 'request');

export function checkRequest(request: CreateRunRequest): void {
  if (typeof request.model === 'string') checkModel(request.model);
  const problem = explain(request);
  if (problem !== null) throw new RequestError('INVALID_ARGUMENT', problem);
  // Here, because the digest of the request is computed by a recursive walk.
  const bounds = request.output_schema === undefined ? null : explainBounds(request.output_schema);
  if (bounds !== null) throw new RequestError('INVALID_ARGUMENT', `output_schema cannot be used: ${bounds}`);
}
