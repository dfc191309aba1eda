// The open question of a run, its answer, and the inbox of all runs.
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import * as z from 'zod';
import { loadReadableSummary } from '../../journal/load-run.js';
import type { Reply } from '../../commands/reply.js';
import { viewInteraction } from '../../journal/run-view.js';
import { refusal } from '../../run/request-error.js';
import type { PendingFilter } from '../../store/store.js';
import { callerOf } from '../access/access.js';
import { toInboxItems } from '../streams/inbox-feed.js';
import { countFitting } from '../list-page.js';
import { keyOf, labelOf, REFUSALS } from '../requests.js';
import { toRunView } from '../streams/run-feed.js';
import { inboxPage, inboxQuery, interactionView, replyBody, runId, runViewFor } from '../schemas.js';
import type { RouteContext } from '../service.js';
import { contractFor } from '../../run/waiting/run-contract.js';

const params = z.strictObject({ id: runId });
const sse = {
  description: '"reset", then "pending" for each that waits, "ready", then "pending" and "resolved" as it changes.',
  content: { 'text/event-stream': { schema: z.string() } },
};

export async function inboxRoutes({
  app: bare,
  orchestrator,
  store,
  clock,
  streams,
  inbox,
  contract: { showsWaiting } = contractFor(),
}: RouteContext): Promise<void> {
  const app = bare.withTypeProvider<ZodTypeProvider>();

  app.get(
    '/v1/interactions',
    {
      schema: {
        operationId: 'listInteractions',
        summary: 'What waits for an answer, over all runs, oldest first',
        tags: ['inbox'],
        querystring: inboxQuery,
        response: { 200: inboxPage, ...REFUSALS },
      },
      config: { isExpensive: true },
    },
    async ({ query }) => {
      const questions = await store.summaries.listPending(await filterOf(query));
      const items = await toInboxItems(store, questions.slice(0, query.limit), clock.now());
      const count = countFitting(items);
      return {
        interactions: items.slice(0, count).filter((item) => item !== null) as z.input<
          typeof inboxPage
        >['interactions'],
        next_cursor: questions.length > count ? (questions[count - 1]?.interaction_id ?? null) : null,
      };
    },
  );

  async function filterOf({
    engine,
    label,
    overdue,
    cursor,
    limit,
  }: z.output<typeof inboxQuery>): Promise<PendingFilter> {
    const after = cursor === undefined ? null : await store.summaries.loadInteraction(cursor);
    if (cursor !== undefined && !after) throw refusal('INVALID_ARGUMENT.cursor');
    return {
      limit: limit + 1,
      ...(engine === undefined ? {} : { engine }),
      ...(label === undefined ? {} : { label: labelOf(label) }),
      ...(overdue === 'true' ? { overdueAt: clock.now() } : {}),
      ...(after ? { after } : {}),
    };
  }

  app.get(
    '/v1/interactions/events',
    {
      exposeHeadRoute: false,
      schema: {
        operationId: 'streamInteractions',
        summary: 'The inbox as it changes',
        tags: ['inbox'],
        response: { 200: sse, ...REFUSALS },
      },
    },
    async (request, reply) => {
      streams.checkRoom(callerOf(request));
      void streams.serve(reply, (stream) => inbox.feed(stream));
      return reply;
    },
  );

  app.get(
    '/v1/runs/:id/interaction',
    {
      schema: {
        operationId: 'getInteraction',
        summary: 'What the run waits for',
        tags: ['inbox'],
        params,
        response: { 200: interactionView, ...REFUSALS },
      },
      config: { isWhole: true },
    },
    async ({ params: { id } }) => {
      await loadReadableSummary(store, id);
      const pending = await store.loadPendingInteraction(id);
      if (!pending) throw refusal('INTERACTION_NOT_FOUND.none', { run: id });
      return viewInteraction(pending, clock.now()) as z.input<typeof interactionView>;
    },
  );

  app.post(
    '/v1/runs/:id/interaction/reply',
    {
      schema: {
        operationId: 'reply',
        summary: 'Answer the open question; the run continues',
        tags: ['inbox'],
        params,
        body: replyBody,
        response: { 200: runViewFor({ showsWaiting }), ...REFUSALS },
      },
      config: { role: 'replier', isWhole: true },
    },
    async (request) => {
      const key = keyOf(request, request.body.idempotency_key);
      const reply = { ...request.body, ...(key === undefined ? {} : { idempotency_key: key }) } as Reply;
      const run = await orchestrator.reply(request.params.id, reply, callerOf(request).actor);
      // A run that was just answered is not recovering.
      const shownFor = { now: clock.now(), showsWaiting, isRecovering: () => false };
      return (await toRunView(store, run, shownFor)) as z.input<ReturnType<typeof runViewFor>>;
    },
  );
}
