// The webhooks of the OpenAPI document: the deliveries that `parley serve` sends to the URLs in its settings. The
// payloads are built in journal/build-deliveries.ts and hooks/post.ts; tests/service/api-examples.test.ts compares them
// with these schemas.
import * as z from 'zod';
import { HOOK_EVENTS, type HookEvent } from '../../run/hook-event.js';
import { STATES } from '../../run/statechart.js';
import { QUESTION_KINDS } from '../../store/stored-shapes.js';
import { timestamp } from '../schemas.js';
import { DELIVERIES } from './webhook-examples.js';

const id = z
  .string()
  .meta({ description: 'Equal for every attempt of a delivery: ignore an id that you have processed.' });
const seq = z.int().min(0).meta({ description: 'The last RASP event of the run. Compare it within a run.' });
const digest = z.string().meta({ description: 'The digest of the RASP journal right after the change.' });
const url = z.string().nullable().meta({ description: 'Where people open the run.' });

const runDelivery = z.strictObject({
  id,
  type: z.enum(HOOK_EVENTS.map((event) => `run.${event}` as const)),
  run_id: z.string(),
  request_id: z.string(),
  status: z.enum(STATES),
  engine: z.string(),
  labels: z.record(z.string(), z.string()),
  attempt_number: z.int().min(1).meta({ description: 'The turn.' }),
  at: timestamp,
  silent_since: timestamp
    .optional()
    .meta({ description: 'Only for run.silent: since when the turn has printed nothing.' }),
  interaction: z
    .strictObject({
      interaction_id: z.string(),
      kind: z.enum(QUESTION_KINDS).nullable(),
      prompt: z.string(),
      options: z.array(z.looseObject({ label: z.string(), value: z.unknown() })),
    })
    .nullable()
    .meta({ description: 'The open question of run.waiting_user; its prompt is cut after 10,000 characters.' }),
  error: z
    .strictObject({ code: z.string(), message: z.string() })
    .nullable()
    .meta({ description: 'Why the run failed; the code is one of RunError.' }),
  url,
  seq,
  digest,
});
const testDelivery = z.strictObject({
  id,
  type: z.literal('test'),
  at: timestamp,
  message: z.string(),
  url,
  seq,
  digest,
});

const SUMMARIES: Readonly<Partial<Record<HookEvent | 'test', string>>> = {
  waiting_user: 'A run waits for an answer',
  succeeded: 'A run succeeded',
  failed: 'A run failed',
  canceled: 'A run was canceled',
  silent: 'A running turn has printed nothing for a long time',
  test: 'The delivery of `parley webhook test`',
};
const HEADERS = [
  ['webhook-id', 'The id of the delivery.'],
  ['webhook-timestamp', 'When this attempt was sent, in seconds since 1970.'],
  ['webhook-signature', '`v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body` with the secret of the hook.'],
] as const;

// Adds the webhooks and their schemas to the document.
export function addWebhooks<D extends { readonly components?: { readonly schemas?: object } }>(document: D): D {
  const events = [...HOOK_EVENTS.map((event) => [`run.${event}`, event] as const), ['test', 'test'] as const];
  return {
    ...document,
    webhooks: Object.fromEntries(events.map(([type, event]) => [type, { post: describe(type, event) }])),
    components: {
      ...document.components,
      schemas: {
        ...document.components?.schemas,
        RunDelivery: toSchema(runDelivery),
        TestDelivery: toSchema(testDelivery),
      },
    },
  };
}

function describe(type: string, event: HookEvent | 'test'): object {
  const name = event.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
  const summary = SUMMARIES[event] ?? type;
  return {
    operationId: event === 'test' ? 'onTestDelivery' : `onRun${name}`,
    summary,
    description: 'Delivery is at least once and may be out of order. Verify the signature before you parse the body.',
    security: [],
    parameters: HEADERS.map(([header, description]) => ({
      name: header,
      in: 'header',
      required: true,
      description,
      schema: { type: 'string' },
    })),
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: { $ref: `#/components/schemas/${event === 'test' ? 'TestDelivery' : 'RunDelivery'}` },
          examples: { example: { summary, value: DELIVERIES[type] } },
        },
      },
    },
    responses: {
      '2XX': { description: 'The delivery has arrived.' },
      default: { description: 'Any other response, or none within 10 seconds: Parley tries again for 3 days.' },
    },
  };
}

function toSchema(schema: z.ZodType): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { target: 'draft-2020-12' });
  return rest;
}
