// The requests and responses of the API as zod schemas. Responses are strict so that no internal member is sent, and
// requests so that a typo is reported. The OpenAPI document is built from them.
import * as z from 'zod';
import { createRunRequest, shortName } from '../commands/create-request.js';
import { RUN_ERRORS } from '../contract/error-codes.js';
import { formText } from '../messages/forms.js';
import { STATES } from '../run/statechart.js';
import type { RunContract } from '../run/waiting/run-contract.js';
import { ACTOR_KINDS, EXECUTION_MODES, PERMISSIONS, QUESTION_KINDS, STORED_RUN_ID } from '../store/stored-shapes.js';

const MAX_PAGE = 500;

export const runId = z
  .string()
  .regex(/^run_[0-9A-Z]{26}$/, formText('run_id'))
  .meta({ description: 'The id of a run.' });
// Used in responses: stored ids may have an older form.
const storedRunId = z.string().regex(STORED_RUN_ID).meta({ description: 'The id of a run.' });
const interactionId = z.string().regex(/^int_[0-9A-Z]{26}$/, formText('question_id'));
export const timestamp = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
  .meta({ description: 'ISO 8601, UTC, milliseconds.' });
// Accepts decimal digits only: "", " 1", "0x2" and "1e3" are refused.
function wholeNumber(schema: z.ZodNumber) {
  return z.preprocess(
    (text) => (typeof text === 'string' ? (/^\d{1,15}$/.test(text) ? Number(text) : NaN) : text),
    schema,
  );
}
export const seq = wholeNumber(z.number(formText('decimal_digits')).int().min(0));
export const pageSize = wholeNumber(
  z
    .number(formText('whole_number_between', { least: 1, most: MAX_PAGE }))
    .int()
    .min(1)
    .max(MAX_PAGE),
);
const status = z.enum(STATES);
const executionMode = z.enum(EXECUTION_MODES);
const permission = z.enum(PERMISSIONS);
// Any JSON value needs no check, and a recursive schema would produce a reference that resolves to nothing.
const json = z.unknown();
const object = z.record(z.string(), json);
const label = z
  .string()
  .regex(/^[^=]+=/, formText('name_value'))
  .meta({ description: 'name=value' });

const messageValues = z
  .record(
    z.string(),
    z.union([
      z.string(),
      z.number(),
      z.array(z.object({ value: z.string(), rule: z.string(), values: z.record(z.string(), json).optional() })),
    ]),
  )
  .meta({
    description:
      'The values in the message, by name; problems: the phrases from which values were made ' +
      '(contract/phrases.json), with value, the name of the value.',
  });

const errorBody = z.strictObject({
  code: z.string(),
  message: z.string(),
  hint: z.string().optional(),
  values: messageValues.optional(),
  details: object.optional(),
});

export const errorEnvelope = z
  .strictObject({ error: errorBody })
  .meta({ id: 'Error', description: 'The code is one of contract/errors.json.' });

// Documented as an enum, not checked: a run of a later version, or of another setting, may have another code.
const runErrorCode = z
  .string()
  .meta({ enum: Object.keys(RUN_ERRORS), description: 'Why the run failed: contract/errors.json, GET /v1/contract.' });
// Not strict: members that a newer version stored are left out.
const runError = z
  .object({
    code: runErrorCode,
    message: z.string(),
    values: messageValues.optional(),
    hint: z.string().optional(),
    details: object.optional(),
  })
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
    continue_from: storedRunId.nullable().meta({ description: 'The run whose session this run continues.' }),
    fork_from: storedRunId.nullable().meta({ description: 'The run whose conversation was copied at the start.' }),
    retry_of: storedRunId
      .nullable()
      .meta({ description: 'The interrupted run that Parley repeats with this one (recovery.running).' }),
    created_at: timestamp,
    updated_at: timestamp,
    waited_ms: z.int().min(0).meta({
      description: 'How long its questions have waited for a person in total, without the open one.',
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
    recovering: z
      .literal(true)
      .optional()
      .meta({
        description:
          'The run was interrupted, and its last output is still to be read: its end is not known yet, and it can ' +
          'only be canceled. Absent: no.',
      }),
    damage: z.array(z.string()).min(1).optional().meta({
      description: 'Descriptions of damaged stored data; the affected fields have neutral values. Absent: no damage.',
    }),
  })
  .meta({ id: 'Run' });

// With the setting sessions.sticky, a run also shows how it waits. Built only then, so that the API description does
// not contain it otherwise.
const makeStickyRun = () =>
  z
    .strictObject({
      ...runView.shape,
      interactive_profile: z
        .strictObject({ kind: z.enum(['resumable', 'sticky_process']) })
        .nullable()
        .meta({ description: 'How the run waits; null: not recorded.' }),
      wait_deadline_at: timestamp.nullable().meta({ description: 'How long its process waits for the answer.' }),
    })
    .meta({ id: 'StickyRun' });
let stickyRun: ReturnType<typeof makeStickyRun> | undefined;

// Returns the same type for both contracts, because routes handle them alike.
export function runViewFor({ showsWaiting }: Pick<RunContract, 'showsWaiting'>): typeof runView {
  return showsWaiting ? ((stickyRun ??= makeStickyRun()) as unknown as typeof runView) : runView;
}

const truncated = z.array(z.enum(['prompt', 'labels', 'error', 'result', 'question', 'answer'])).meta({
  description:
    'The parts that are longer than shown here; GET /v1/runs/{id} and GET /v1/runs/{id}/interaction return them ' +
    'completely. Read a truncated question completely before you answer it.',
});
export const runSummary = z
  .strictObject({ ...runView.shape, truncated })
  .meta({ id: 'RunSummary', description: 'A run as lists show it: every part is bounded in size.' });

export function runListFor(contract: Pick<RunContract, 'showsWaiting'>): typeof runList {
  if (!contract.showsWaiting) return runList;
  const stickySummary = z.strictObject({ ...runViewFor(contract).shape, truncated }).meta({ id: 'StickyRunSummary' });
  return z.strictObject({ runs: z.array(stickySummary), next_cursor: z.string().nullable() }) as typeof runList;
}

export const createRunBody = createRunRequest;
const { prompt, request_id: requestId, force } = createRunRequest.shape;
export const continueBody = z.strictObject({ prompt, request_id: requestId, force });
export const retryBody = z.strictObject({ request_id: requestId, force }).nullish();

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
    .meta({ description: 'Instead of a response: ends a conversation in which nothing was asked.' }),
  review: z.enum(['seen', 'unread']).optional().meta({
    description: 'For an approval: whether you showed the whole action before the decision. The journal records it.',
  }),
  idempotency_key: shortName.optional().meta({
    description: 'Your key (or the header Idempotency-Key): the same answer with the same key is applied once.',
  }),
});

export const listQuery = z.strictObject({
  status: status.optional(),
  engine: shortName.optional(),
  label: label.optional(),
  cursor: runId.optional(),
  limit: pageSize.default(50),
});
export const runList = z.strictObject({ runs: z.array(runSummary), next_cursor: z.string().nullable() });

export const inboxQuery = z.strictObject({
  state: z.literal('pending').optional(),
  engine: shortName.optional(),
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
  .meta({ id: 'InboxItem', description: 'A question with the run that asks it.' });
export const inboxPage = z.strictObject({ interactions: z.array(inboxItem), next_cursor: z.string().nullable() });

// With Z or an offset. In a URL, an unencoded plus sign arrives as a blank.
const time = z.preprocess(
  (text) => (typeof text === 'string' ? text.replace(/ (?=\d{2}:?\d{2}$)/, '+') : text),
  z.iso.datetime({ offset: true, error: formText('time_example') }),
);
export const streamQuery = z.strictObject({
  cursor: seq
    .optional()
    .meta({ description: 'The seq of the last event that you have; the header Last-Event-ID overrides it.' }),
});
export const historyQuery = z.strictObject({
  from_seq: seq.optional(),
  to_seq: seq.optional(),
  from_ts: time.optional(),
  to_ts: time.optional(),
  limit: wholeNumber(
    z
      .number(formText('whole_number_between', { least: 1, most: 5000 }))
      .int()
      .min(1)
      .max(5000),
  ).default(1000),
});
const damagedPieces = z
  .array(z.strictObject({ from_seq: z.int(), to_seq: z.int(), message: z.string() }))
  .meta({ description: 'Damaged events, which are left out. Absent: none.' });
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
  attempt: wholeNumber(z.number(formText('integer')).int().min(1))
    .optional()
    .meta({ description: 'The turn; by default the last one.' }),
  stream: z.enum(['stdout', 'stderr']).default('stdout'),
  byte_from: seq.optional(),
  byte_to: seq.optional().meta({ description: 'Exclusive.' }),
});

// escaped: a name in the path is not UTF-8; its bytes outside ASCII are written as \xNN. truncated: the list is
// incomplete.
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
  defaults: z
    .strictObject({
      execution_mode: z.enum(['auto', 'interactive']).nullable().meta({ description: 'null: auto over HTTP.' }),
      permission: z.enum(['read-only', 'workspace-write', 'full']),
      model: z.record(z.string(), z.string()).meta({ description: 'By engine.' }),
      turn_timeout_sec: z.number().nullable(),
      idle_timeout_sec: z.number(),
      tool_timeout_sec: z.number(),
    })
    .meta({ description: 'The values of new runs that do not set their own (the setting `defaults`).' }),
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
export const verifyQuery = z.strictObject({ progress: z.enum(['true', 'false']).optional() });
// One line of application/x-ndjson. The last line is the result or the error.
export const verifyLine = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('waiting'),
    checks_before: z.int().meta({ description: 'How many checks run before this one' }),
  }),
  z.strictObject({
    type: z.literal('progress'),
    events: z.int(),
    total_events: z.int(),
    log_bytes: z.int(),
    total_log_bytes: z.int(),
  }),
  z.strictObject({
    type: z.literal('result'),
    run_id: runId,
    ok: z.boolean(),
    checks: z.array(z.strictObject({ name: z.string(), ok: z.boolean(), finding: z.string() })),
  }),
  z.strictObject({ type: z.literal('error'), error: errorBody }),
]);
export const verification = z.strictObject({
  run_id: runId,
  ok: z.boolean(),
  checks: z.array(z.strictObject({ name: z.string(), ok: z.boolean(), finding: z.string() })),
});
