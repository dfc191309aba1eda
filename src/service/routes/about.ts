// The server about itself: is it well, what can it drive, how do its parsers do, what is the contract.
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { listRunErrors } from '../../run/list-run-errors.js';
import { RequestError } from '../../run/request-error.js';
import { CHART, EVENTS, INITIAL_STATE, STATES, STICKY_CHART, TERMINAL_STATES } from '../../run/statechart.js';
import { callerOf } from '../access/access.js';
import { CHALLENGE_FORM } from '../access/host-proof.js';
import { REFUSALS } from '../requests.js';
import { engineList, parserTotals, whoAmI } from '../schemas.js';
import type { Room } from '../service.js';

const healthy = z.strictObject({ status: z.literal('ok') });
// Among several hosts: which one answers, and if it was challenged the proof of it.
const ready = healthy.extend({ host_id: z.string().optional(), proof: z.string().optional() });
// Whoever looks whether it is well may add what he likes.
const challenged = z.object({
  challenge: z.string().regex(CHALLENGE_FORM, '16 to 128 letters, digits, _ and -').optional(),
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
  sticky,
  isClosing,
  thisHost = null,
}: Room): Promise<void> {
  const app = bare.withTypeProvider<ZodTypeProvider>();
  app.get('/healthz', health('isAlive', 'The process is alive', healthy), async () => ({ status: 'ok' as const }));
  const { schema, config } = health('isReady', 'The store can be read, and a host among several has its lease', ready);
  app.get('/readyz', { schema: { ...schema, querystring: challenged }, config }, async ({ query: { challenge } }) => {
    if (isClosing()) throw new RequestError('SHUTTING_DOWN', 'the server is shutting down');
    if (thisHost?.mayPlay() === false)
      throw new RequestError(
        'STORE_UNAVAILABLE',
        'this host has lost its lease and has no other yet: it could not reach the database in time',
      );
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
        summary: 'The engines, and whether they are there',
        tags: ['service'],
        response: { 200: engineList, ...REFUSALS },
      },
    },
    async () => ({ engines: [...(await engines())] }),
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
      edges: (sticky ? STICKY_CHART : CHART) as unknown as z.input<typeof contract>['edges'],
      run_errors: listRunErrors(sticky ?? false),
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
