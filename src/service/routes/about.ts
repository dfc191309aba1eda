// Information about the server: health, engines, parsers and the contract.
import { formText } from '../../messages/forms.js';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import * as z from 'zod';
import { refusal } from '../../run/request-error.js';
import { EVENTS, INITIAL_STATE, STATES, TERMINAL_STATES } from '../../run/statechart.js';
import { callerOf } from '../access/access.js';
import { CHALLENGE_FORM } from '../access/host-proof.js';
import { REFUSALS } from '../requests.js';
import { engineList, parserTotals, whoAmI } from '../schemas.js';
import type { RouteContext } from '../service.js';
import { contractFor } from '../../run/waiting/run-contract.js';

const healthy = z.strictObject({ status: z.literal('ok') });
// With several hosts: which host responds, and its proof if it was challenged.
const ready = healthy.extend({ host_id: z.string().optional(), proof: z.string().optional() });
// Not strict: health checks may add query parameters.
const challenged = z.object({
  challenge: z.string().regex(CHALLENGE_FORM, formText('challenge')).optional(),
});
const contract = z.looseObject({
  initial: z.string(),
  states: z.array(z.string()),
  terminal: z.array(z.string()),
  events: z.array(z.string()),
  edges: z.array(z.looseObject({ id: z.string(), from: z.string(), on: z.string(), to: z.string() })),
  run_errors: z.array(z.strictObject({ code: z.string(), retryable: z.boolean(), meaning: z.string() })),
});

function health<T extends z.ZodType>(operationId: string, summary: string, answer: T) {
  return {
    schema: { operationId, summary, tags: ['service'], security: [], response: { 200: answer, ...REFUSALS } },
    config: { role: 'anyone' } as const,
  };
}

export async function aboutRoutes({
  app: bare,
  store,
  metrics,
  engines,
  runDefaults,
  contract: runContract = contractFor(),
  isClosing,
  thisHost = null,
}: RouteContext): Promise<void> {
  const app = bare.withTypeProvider<ZodTypeProvider>();
  app.get('/healthz', health('isAlive', 'The process is alive', healthy), async () => ({ status: 'ok' as const }));
  const { schema, config } = health('isReady', 'The store can be read, and a host among several has its lease', ready);
  app.get('/readyz', { schema: { ...schema, querystring: challenged }, config }, async ({ query: { challenge } }) => {
    if (isClosing()) throw refusal('SHUTTING_DOWN.change');
    if (thisHost?.mayRun() === false) throw refusal('STORE_UNAVAILABLE.lease');
    store.checkUsable?.();
    await store.listQueued(1);
    if (!thisHost) return { status: 'ok' as const };
    const { hostId } = thisHost;
    return {
      status: 'ok' as const,
      host_id: hostId,
      ...(challenge === undefined ? {} : { proof: thisHost.prove(challenge) }),
    };
  });

  app.get(
    '/v1/me',
    {
      schema: {
        operationId: 'whoAmI',
        summary: 'Whose token this is, and what it allows',
        tags: ['service'],
        response: { 200: whoAmI, ...REFUSALS },
      },
    },
    async (request) => {
      const { actor, role } = callerOf(request);
      return { name: actor.name, role };
    },
  );

  app.get(
    '/v1/engines',
    {
      schema: {
        operationId: 'listEngines',
        summary: 'The engines, whether they are installed, and the defaults of new runs',
        tags: ['service'],
        response: { 200: engineList, ...REFUSALS },
      },
    },
    async () => {
      const { mode, permission, model, limits } = runDefaults();
      const { turn_timeout_sec, idle_timeout_sec, tool_timeout_sec } = limits;
      return {
        engines: [...(await engines())],
        defaults: { execution_mode: mode, permission, model, turn_timeout_sec, idle_timeout_sec, tool_timeout_sec },
      };
    },
  );

  app.get(
    '/v1/metrics/parsers',
    {
      schema: {
        operationId: 'parserMetrics',
        summary: 'What the parsers made of the output, by engine and profile',
        tags: ['service'],
        response: { 200: parserTotals, ...REFUSALS },
      },
      config: { isExpensive: true },
    },
    async () => ({ profiles: (await store.sumTurns()) as z.input<typeof parserTotals>['profiles'] }),
  );

  app.get(
    '/v1/contract',
    {
      schema: {
        operationId: 'getContract',
        summary: 'The chart that runs go by, and the codes that they fail with',
        tags: ['service'],
        response: { 200: contract, ...REFUSALS },
      },
    },
    async () => ({
      initial: INITIAL_STATE,
      states: [...STATES],
      terminal: [...TERMINAL_STATES],
      events: [...EVENTS],
      edges: runContract.edges as unknown as z.input<typeof contract>['edges'],
      run_errors: [...runContract.runErrors],
    }),
  );

  app.get(
    '/metrics',
    {
      schema: {
        operationId: 'metrics',
        summary: 'The figures of the server, for Prometheus',
        tags: ['service'],
        response: {
          200: { description: 'Prometheus text', content: { 'text/plain': { schema: z.string() } } },
          ...REFUSALS,
        },
      },
      config: { isExpensive: true },
    },
    async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()),
  );
}
