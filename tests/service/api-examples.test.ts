// The examples of the OpenAPI document: every request and response has one, and each is valid by its schema. Real
// webhook deliveries match the documented payloads.
import Fastify from 'fastify';
import { beforeAll, describe, expect, test } from 'vitest';
import { BY_ZOD } from '../../src/service/api/compilers.js';
import { addRoutes } from '../../src/service/routes/add-routes.js';
import { buildDeliveries, buildSilenceDeliveries } from '../../src/journal/build-deliveries.js';
import { post } from '../../src/hooks/post.js';
import { contractFor } from '../../src/run/waiting/run-contract.js';
import { HOOK_EVENTS } from '../../src/run/hook-event.js';
import { explainBy, operationsOf, type ApiDocument } from '../support/openapi.js';

interface Media {
  readonly schema: object;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}
interface Described extends ApiDocument {
  readonly servers: readonly { readonly url: string }[];
  readonly webhooks: Readonly<
    Record<string, { readonly post: { readonly requestBody: { readonly content: Record<string, Media> } } }>
  >;
  readonly components: {
    readonly schemas: {
      readonly RunError: {
        readonly properties: {
          readonly code: { readonly enum: string[]; readonly 'x-enumDescriptions': Record<string, string> };
        };
      };
    };
  };
}

async function load(sticky: boolean): Promise<{ readonly document: Described; readonly page: string }> {
  const app = Fastify({ schemaController: BY_ZOD });
  // Registration only declares routes.
  const context = { app, version: '', consoleDir: null, orchestrator: {}, contract: contractFor({ sticky }) };
  await addRoutes(context as unknown as Parameters<typeof addRoutes>[0]);
  const document = (await app.inject('/openapi.json')).json<Described>();
  const page = (await app.inject('/docs')).body;
  await app.close();
  return { document, page };
}

function problemsOf(document: Described, where: string, { schema, examples = {} }: Media): string[] {
  if (Object.keys(examples).length === 0) return [`${where}: no example`];
  return Object.entries(examples).flatMap(([name, { value }]) => {
    const problem = explainBy(document, schema, value);
    return problem === null ? [] : [`${where} ${name}: ${problem}`];
  });
}

describe.each([false, true])('with sticky sessions: %s', (sticky) => {
  let document: Described;
  let page: string;
  beforeAll(async () => {
    ({ document, page } = await load(sticky));
  });

  test('every request and response has an example, and every example is valid by its schema', () => {
    const operations = operationsOf(document);
    expect(operations.length).toBeGreaterThan(30);
    const problems = operations.flatMap(({ operationId, requestBody = {}, responses }) =>
      Object.entries({ request: requestBody, ...responses }).flatMap(([part, { content = {} }]) =>
        Object.values(content).flatMap((media) => problemsOf(document, `${operationId} ${part}`, media)),
      ),
    );
    expect(problems).toEqual([]);
  });

  test('every webhook is described, with a valid example', () => {
    expect(Object.keys(document.webhooks)).toEqual([...HOOK_EVENTS.map((event) => `run.${event}`), 'test']);
    const problems = Object.entries(document.webhooks).flatMap(([type, webhook]) =>
      Object.values(webhook.post.requestBody.content).flatMap((media) => problemsOf(document, type, media)),
    );
    expect(problems).toEqual([]);
  });

  test('the error codes of runs are listed with their meanings', () => {
    const { runErrors } = contractFor({ sticky });
    const { enum: codes, 'x-enumDescriptions': meanings } = document.components.schemas.RunError.properties.code;
    expect(codes).toEqual(runErrors.map(({ code }) => code));
    for (const { code, meaning } of runErrors) expect(meanings[code]).toContain(meaning);
  });

  test('the document names its server, and the page shows server, examples, webhooks and run errors', () => {
    expect(document.servers).toEqual([{ url: 'http://127.0.0.1:7717', description: 'This server' }]);
    for (const text of ['http://127.0.0.1:7717', 'Only the required members', 'run.waiting_user', 'ENGINE_EXITED'])
      expect(page).toContain(text);
    expect(page).not.toMatch(/\[object Object\]|undefined/);
  });
});

async function bodyOf(payload: Parameters<typeof post>[2]['payload']): Promise<unknown> {
  let body: unknown;
  const fetch = async (_url: string, init: RequestInit): Promise<Response> => {
    body = JSON.parse(init.body as string);
    return new Response(null, { status: 204 });
  };
  const deps = {
    fetch,
    timers: { set: () => () => {} },
    clock: { now: () => 0 },
    stop: new AbortController().signal,
  };
  const hook = { name: 'chat', events: HOOK_EVENTS, url: 'http://127.0.0.1/', key: Buffer.alloc(16) };
  const sent = { delivery_id: 'dlv_1', payload, rasp_seq: 7, digest: 'aa' };
  await post(deps as unknown as Parameters<typeof post>[0], hook, sent);
  return body;
}

const change = (to: string, after: object): Parameters<typeof buildDeliveries>[3] =>
  ({
    edge: { from: 'running', to },
    at: 0,
    after: { attempt_number: 1, error: null, question: null, ...after },
    url: null,
  }) as never;

describe('webhook deliveries', () => {
  const run = {
    run_id: 'run_1',
    request_id: 'order-17',
    status: 'running',
    attempt_number: 1,
    spec: { engine: 'codex', labels: { team: 'core' } },
  } as unknown as Parameters<typeof buildDeliveries>[2];
  const ids = { delivery: () => 'dlv_1' } as unknown as Parameters<typeof buildDeliveries>[1];
  const hooks = [{ name: 'chat', events: HOOK_EVENTS }];

  test('real deliveries match the documented payload', async () => {
    const { document } = await load(false);
    const question = {
      interaction_id: 'int_1',
      state: 'pending',
      question: { kind: 'choose_one', prompt: 'Which?', options: [{ label: 'A', value: 'a' }] },
    };
    const error = { code: 'ENGINE_EXITED', message: 'It exited.', details: { exit_code: 1 } };
    const payloads = [
      ...buildDeliveries(hooks, ids, run, change('waiting_user', { question })),
      ...buildDeliveries(hooks, ids, run, change('succeeded', {})),
      ...buildDeliveries(hooks, ids, run, change('failed', { error })),
      ...buildDeliveries(hooks, ids, run, change('canceled', {})),
      ...buildSilenceDeliveries(hooks, ids, run, { at: 0, since: 0, url: 'http://127.0.0.1/' }),
    ];
    expect(payloads.map(({ type }) => type).toSorted()).toEqual(HOOK_EVENTS.map((event) => `run.${event}`).toSorted());
    for (const { type, payload } of payloads) {
      const schema = document.webhooks[type]?.post.requestBody.content['application/json']?.schema ?? {};
      expect(explainBy(document, schema, await bodyOf(payload)), type).toBeNull();
    }
  });
});
