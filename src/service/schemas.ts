// What goes over HTTP, as zod schemas: closed where we speak, so that nothing slips out, and where we are spoken to, so
// that a slip is told. The OpenAPI document is made from them.
import { z } from 'zod';
import { MAX_MODEL_CHARS, MODEL_PATTERN, MODEL_RULE } from '../run/model-name.js';
import { RUN_ERRORS } from '../contract/error-codes.js';
import { STATES } from '../run/statechart.js';
import { ACTOR_KINDS, EXECUTION_MODES, PERMISSIONS, QUESTION_KINDS, STORED_RUN_ID } from '../store/stored-shapes.js';

const MAX_PAGE = 500;

export const runId = z
  .string()
  .regex(/^run_[0-9A-Z]{26}$/, 'the whole id of a run, such as run_ and 26 letters and digits')
  .meta({ description: 'The id of a run.' });
// In responses: whatever id a stored row may have.
const storedRunId = z.string().regex(STORED_RUN_ID).meta({ description: 'The id of a run.' });
export const interactionId = z
  .string()
  .regex(/^int_[0-9A-Z]{26}$/, 'the whole id of a question, such as int_ and 26 letters and digits');
export const timestamp = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
  .meta({ description: 'ISO 8601, UTC, milliseconds.' });
// Without NUL: the store would cut it off there, and take two for one.
const whole = z.string().regex(/^[^\u0000]*$/, 'a text without NUL characters');
const name = whole.min(1).max(200);
// Decimal digits and nothing else: "", " 1", "0x2" and "1e3" are refused.
function wholeNumber(schema: z.ZodNumber) {
  return z.preprocess(
    (text) => (typeof text === 'string' ? (/^\d{1,15}$/.test(text) ? Number(text) : NaN) : text),
    schema,
  );
}
export const seq = wholeNumber(z.number('a whole number in decimal digits').int().min(0));
export const pageSize = wholeNumber(z.number(`a whole number from 1 to ${MAX_PAGE}`).int().min(1).max(MAX_PAGE));
const status = z.enum(STATES);
const executionMode = z.enum(EXECUTION_MODES);
const permission = z.enum(PERMISSIONS);
// What comes as JSON is JSON: nothing to check, and a schema that names itself would be a reference that leads nowhere.
const json = z.unknown();
const object = z.record(z.string(), json);
const label = z
  .string()
  .regex(/^[^=]+=/, 'name=value')
  .meta({ description: 'name=value' });

export const errorEnvelope = z
  .strictObject({
    error: z.strictObject({ code: z.string(), message: z.string(), details: object.optional() }),
  })
  .meta({ id: 'Error', description: 'The code is one of contract/errors.json.' });

// Documented as an enum, not checked: a run of a later version, or of another setting, may have another code.
const runErrorCode = z
  .string()
  .meta({ enum: Object.keys(RUN_ERRORS), description: 'Why the run failed: contract/errors.json, GET /v1/contract.' });
// Not strict: members that a newer version stored are left out.
const runError = z
  .object({ code: runErrorCode, message: z.string(), details: object.optional() })
  .meta({ id: 'RunError' });
const actor = z.object({
  kind: z.enum(ACTOR_KINDS),
  name: z.string(),
  token: z.string().optional(),
});

export const interactionView = z
  .strictObject({
    interaction_id: z.string(),
    run_id: storedRunId,
    attempt_number: z.int().min(1),
    state: z.enum(['pending', 'answered', 'auto_decided', 'canceled', 'abandoned']),
    question: z.looseObject({
      kind: z.enum(QUESTION_KINDS),
      prompt: z.string(),
      options: z.array(z.looseObject({ label: z.string(), value: json })),
    }),
    asked_at: timestamp,
    due_at: timestamp,
    overdue: z.boolean(),
    answer: z.strictObject({ at: timestamp, response: json, actor: actor.nullable(), finish: z.boolean() }).nullable(),
  })
  .meta({ id: 'Interaction', description: 'A question of a run, and its answer.' });

export const runView = z
  .strictObject({
    run_id: storedRunId,
    request_id: z.string(),
    status,
    engine: z.string(),
    execution_mode: executionMode,
    attempt_number: z.int().min(1),
    prompt: z.string(),
    cwd: z.string(),
    model: z.string().nullable(),
    permission,
    labels: z.record(z.string(), z.string()),
    continue_from: storedRunId.nullable().meta({ description: 'The run in whose session it goes on.' }),
    fork_from: storedRunId.nullable().meta({ description: 'The run whose conversation it began with a copy of.' }),
    retry_of: storedRunId
      .nullable()
      .meta({ description: 'The run that a stop of Parley interrupted and that this one repeats (recovery.running).' }),
    created_at: timestamp,
    updated_at: timestamp,
    waited_ms: z.int().min(0).meta({
      description: 'How long its questions have waited for a person, all in all; one that waits now is not in it.',
    }),
    silent_since: timestamp.nullable().meta({
      description: 'Since when the running turn has printed nothing, once that is longer than silence_notice_sec.',
    }),
    error: runError.nullable(),
    result: json,
    rasp_seq: z.int().min(0),
    fcmp_seq: z.int().min(0),
    digest: z.string(),
    interaction: interactionView.nullable(),
    damage: z.array(z.string()).min(1).optional().meta({
      description:
        'Stored data of the run that is damaged, in words; its fields have neutral values. Absent: nothing is damaged.',
    }),
  })
  .meta({ id: 'Run' });

// With sessions.sticky on a run also tells how it waits; made only then, so that the API has nothing of it otherwise.
const makeStickyRun = () =>
  z
    .strictObject({
      ...runView.shape,
      interactive_profile: z
        .strictObject({ kind: z.enum(['resumable', 'sticky_process']) })
        .nullable()
        .meta({ description: 'How the run waits; null: no claim is made.' }),
      wait_deadline_at: timestamp.nullable().meta({ description: 'Until when its process waits for the answer.' }),
    })
    .meta({ id: 'StickyRun' });
let stickyRun: ReturnType<typeof makeStickyRun> | undefined;

// The same type for both: routes do not care.
export function runViewFor(sticky: boolean): typeof runView {
  return sticky ? ((stickyRun ??= makeStickyRun()) as unknown as typeof runView) : runView;
}

export const truncated = z.array(z.enum(['prompt', 'labels', 'error', 'result', 'question', 'answer'])).meta({
  description:
    'The parts that are longer than shown here; GET /v1/runs/{id} and GET /v1/runs/{id}/interaction have them ' +
    'whole. Read a truncated question whole before you answer it.',
});
export const runSummary = z
  .strictObject({ ...runView.shape, truncated })
  .meta({ id: 'RunSummary', description: 'A run as lists show it: every part is bounded in size.' });

export function runListFor(sticky: boolean): typeof runList {
  if (!sticky) return runList;
  const stickySummary = z.strictObject({ ...runViewFor(true).shape, truncated }).meta({ id: 'StickyRunSummary' });
  return z.strictObject({ runs: z.array(stickySummary), next_cursor: z.string().nullable() }) as typeof runList;
}

const force = z.boolean().optional().meta({
  description:
    'true: also for an engine that is known to be missing or logged out (ENGINE_NOT_INSTALLED, ENGINE_LOGGED_OUT).',
});

export const createRunBody = z.strictObject({
  engine: name,
  prompt: z.string().regex(/\S/, 'a text').max(10_000_000),
  execution_mode: executionMode
    .optional()
    .meta({ description: 'interactive: the agent may ask. Else auto: it must do without a person.' }),
  cwd: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'A folder within workspace_roots; without it, the run gets an empty one of its own.' }),
  model: z
    .string()
    .max(MAX_MODEL_CHARS)
    .regex(new RegExp(MODEL_PATTERN), `is not a model name: ${MODEL_RULE}`)
    .optional(),
  permission: permission.optional().meta({ description: 'What the agent may do; workspace-write if nothing is said.' }),
  output_schema: z.union([object, z.boolean()]).optional(),
  runtime_options: object.optional().meta({
    description:
      'session_timeout_sec, interactive_require_user_reply, auto_decide_policy, max_attempt, turn_timeout_sec, ' +
      'idle_timeout_sec, tool_timeout_sec, silence_notice_sec: docs/cli.md has their meaning.',
  }),
  labels: z.record(whole.min(1).max(200), whole.max(2000)).optional(),
  request_id: name.optional().meta({
    description: 'Your key (or the header Idempotency-Key): the same key with the same body gives the same run.',
  }),
  force,
});

export const continueBody = z.strictObject({
  prompt: z.string().regex(/\S/, 'a text').max(10_000_000),
  request_id: name.optional(),
  force,
});
export const retryBody = z.strictObject({ request_id: name.optional(), force }).nullish();

export const replyBody = z.strictObject({
  interaction_id: z.string().min(1).max(200),
  response: json.optional().meta({
    description:
      "The answer: an option's value, a text of your own, an object with a member for each field; for an " +
      'approval {"decision": "approve" | "approve_for_session" | "decline" | "cancel"}.',
  }),
  finish: z
    .boolean()
    .optional()
    .meta({ description: 'In place of a response: ends a conversation in which nothing was asked.' }),
  review: z.enum(['seen', 'unread']).optional().meta({
    description:
      'Of an approval: whether you showed all of it to the person before the decision. The journal records it.',
  }),
  idempotency_key: name
    .optional()
    .meta({ description: 'Your key (or the header Idempotency-Key): the same answer with the same key counts once.' }),
});

export const listQuery = z.strictObject({
  status: status.optional(),
  engine: name.optional(),
  label: label.optional(),
  cursor: runId.optional(),
  limit: pageSize.default(50),
});
export const runList = z.strictObject({ runs: z.array(runSummary), next_cursor: z.string().nullable() });

export const inboxQuery = z.strictObject({
  state: z.literal('pending').optional(),
  engine: name.optional(),
  label: label.optional(),
  overdue: z.enum(['true', 'false']).optional(),
  cursor: interactionId.optional(),
  limit: pageSize.default(50),
});
export const inboxItem = z
  .strictObject({
    ...interactionView.shape,
    engine: z.string(),
    prompt: z.string(),
    labels: z.record(z.string(), z.string()),
    truncated,
  })
  .meta({ id: 'InboxItem', description: 'A question, and the run that asks it.' });
export const inboxPage = z.strictObject({ interactions: z.array(inboxItem), next_cursor: z.string().nullable() });

// With Z or an offset. In an address a plus sign that was not encoded arrives as a blank.
const time = z.preprocess(
  (text) => (typeof text === 'string' ? text.replace(/ (?=\d{2}:?\d{2}$)/, '+') : text),
  z.iso.datetime({ offset: true, error: 'a time such as 2026-01-31T12:00:00Z' }),
);
export const streamQuery = z.strictObject({
  cursor: seq
    .optional()
    .meta({ description: 'The seq of the last event that is known; the header Last-Event-ID goes before it.' }),
});
export const historyQuery = z.strictObject({
  from_seq: seq.optional(),
  to_seq: seq.optional(),
  from_ts: time.optional(),
  to_ts: time.optional(),
  limit: wholeNumber(z.number('a whole number from 1 to 5000').int().min(1).max(5000)).default(1000),
});
const damagedPieces = z
  .array(z.strictObject({ from_seq: z.int(), to_seq: z.int(), message: z.string() }))
  .meta({ description: 'Events that are damaged and left out. Absent: none.' });
export const historyPage = z
  .strictObject({
    events: z.array(z.looseObject({ seq: z.int(), ts: timestamp })),
    next_seq: z.int().nullable(),
    damaged: damagedPieces.optional(),
  })
  .meta({
    id: 'History',
    description: 'Events as they are stored (contract/fcmp.schema.json, contract/rasp.schema.json).',
  });

export const logsQuery = z.strictObject({
  attempt: wholeNumber(z.number('a whole number').int().min(1))
    .optional()
    .meta({ description: 'The turn; the last one if nothing is said.' }),
  stream: z.enum(['stdout', 'stderr']).default('stdout'),
  byte_from: seq.optional(),
  byte_to: seq.optional().meta({ description: 'Exclusive.' }),
});

// escaped: a name in the path is not UTF-8; its bytes outside ASCII are written as \xNN. truncated: there is more than
// is listed.
export const fileList = z.strictObject({
  files: z.array(
    z.strictObject({ path: z.string(), bytes: z.int(), modified_at: timestamp, escaped: z.literal(true).optional() }),
  ),
  truncated: z.boolean(),
});
export const fileQuery = z.strictObject({ path: z.string().min(1).max(4096) });
export const resultView = z.strictObject({ run_id: runId, status, result: json, error: runError.nullable() });

export const engineList = z.strictObject({
  engines: z.array(
    z.strictObject({
      name: z.string(),
      found: z.boolean(),
      program: z.string().nullable(),
      version: z.string().nullable(),
      proved_version: z.string(),
      login: z.boolean().nullable(),
      forks: z.boolean(),
      advice: z.string().nullable(),
    }),
  ),
});

export const parserTotals = z.strictObject({
  profiles: z.array(
    z.strictObject({
      engine: z.string(),
      profile: z.string(),
      turns: z.int(),
      units: z.int(),
      parsed: z.int(),
      fallbacks: z.int(),
      hit_rate: z.number().nullable(),
      warnings: z.record(z.string(), z.int()),
      unknown: z.record(z.string(), z.int()),
    }),
  ),
});

export const whoAmI = z.strictObject({ name: z.string(), role: z.enum(['viewer', 'replier', 'operator']) });
export const verification = z.strictObject({
  run_id: runId,
  ok: z.boolean(),
  checks: z.array(z.strictObject({ name: z.string(), ok: z.boolean(), finding: z.string() })),
});
