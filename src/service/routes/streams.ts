// Streams the journals of runs: server-sent events whose id is the seq, for the conversation and for the observed
// events.
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import * as z from 'zod';
import { loadReadableSummary } from '../../journal/load-run.js';
import { refusal } from '../../run/request-error.js';
import { isTerminal } from '../../run/statechart.js';
import type { Protocol } from '../../store/store.js';
import { callerOf } from '../access/access.js';
import { cursorOf, REFUSALS } from '../requests.js';
import { runId, streamQuery } from '../schemas.js';
import type { RouteContext } from '../service.js';
import { streamJournal } from '../streams/stream-journal.js';

const DESCRIPTIONS: Readonly<Record<Protocol, string>> = {
  fcmp: 'The conversation (FCMP)',
  rasp: 'Observed events (RASP)',
};
const PATHS: Readonly<Record<Protocol, string>> = { fcmp: 'events', rasp: 'rasp' };
const sse = {
  description: 'id is the seq, data the event; then one event named "end".',
  content: { 'text/event-stream': { schema: z.string() } },
};

export async function streamRoutes({
  app: bare,
  store,
  streams,
  pages,
  orchestrator: { wakeups },
}: RouteContext): Promise<void> {
  const app = bare.withTypeProvider<ZodTypeProvider>();
  for (const protocol of ['fcmp', 'rasp'] as const) {
    app.get(
      `/v1/runs/:id/${PATHS[protocol]}`,
      {
        // A HEAD request would open a stream that nobody can read.
        exposeHeadRoute: false,
        schema: {
          operationId: protocol === 'fcmp' ? 'streamEvents' : 'streamRasp',
          summary: `${DESCRIPTIONS[protocol]} as it happens, from any cursor`,
          tags: ['events'],
          params: z.strictObject({ id: runId }),
          querystring: streamQuery,
          response: { 200: sse, 204: z.null(), ...REFUSALS },
        },
      },
      async (request, reply) => {
        const { id } = request.params;
        const run = await loadReadableSummary(store, id);
        const { cursor, again } = cursorOf(request, request.query.cursor);
        const head = protocol === 'rasp' ? run.heads.rasp_seq : run.heads.fcmp_seq;
        if (cursor > head) throw refusal('CURSOR_BEYOND_END', { run: id, head, cursor });
        // A browser reconnects after every end of a stream; 204 makes it stop.
        if (again && cursor === head && isTerminal(run.status)) return reply.code(204).send(null);
        streams.checkRoom(callerOf(request));
        void streams.serve(reply, (stream) =>
          streamJournal({ pages, wakeups }, stream, { runId: id, protocol, cursor }),
        );
        return reply;
      },
    );
  }
}
