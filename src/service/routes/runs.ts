// Creates, lists, returns, cancels, continues, forks and deletes runs.
import { dirname, sep } from 'node:path';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import * as z from 'zod';
import { forceOf } from '../../commands/force-of.js';
import type { CreateRunRequest } from '../../commands/create-request.js';
import { unlessDamaged } from '../../kernel/stored-json.js';
import { inGroups } from '../../process/yield-to-others.js';
import { listReadable } from '../../journal/every-run.js';
import { loadReadableSummary, salvageRun } from '../../journal/load-run.js';
import { runFolder } from '../../journal/run-folder.js';
import type { RunSummaryView, RunView } from '../../journal/run-view.js';
import type { RunRecord } from '../../store/store.js';
import { callerOf } from '../access/access.js';
import { checkWorkspace } from '../access/allowed-paths.js';
import { keyOf, labelOf, REFUSALS } from '../requests.js';
import { countFitting } from '../list-page.js';
import { toRunSummary, toRunView, toSalvagedView, type ShownFor } from '../streams/run-feed.js';
import { continueBody, createRunBody, listQuery, retryBody, runId, runListFor, runViewFor } from '../schemas.js';
import type { RouteContext } from '../service.js';
import type { Caller } from '../access/token-book.js';
import { contractFor } from '../../run/waiting/run-contract.js';

// Each waiting run is one more query.
const VIEWED_AT_ONCE = 50;

const params = z.strictObject({ id: runId });
type RunWire = z.input<ReturnType<typeof runViewFor>>;
const sse = {
  description:
    '"reset" and "ready": list what there is, now; then "run" with the run as lists show it when it is new, ' +
    'changes its state or asks, and "gone" when it was deleted; "reset" again if too much was missed.',
  content: { 'text/event-stream': { schema: z.string() } },
};

export async function runRoutes({
  app: bare,
  orchestrator,
  store,
  clock,
  streams,
  runFeed,
  dataDir,
  workspaceRoots,
  contract: { showsWaiting } = contractFor(),
}: RouteContext): Promise<void> {
  const [runView, runList] = [runViewFor({ showsWaiting }), runListFor({ showsWaiting })];
  const app = bare.withTypeProvider<ZodTypeProvider>();
  const shownFor = (): ShownFor => ({
    now: clock.now(),
    showsWaiting,
    isRecovering: (runId) => orchestrator.isRecovering(runId),
  });
  const view = async (run: RunRecord): Promise<RunWire> => toWire(await toRunView(store, run, shownFor()));

  const checkFolder = (caller: Caller, cwd: string): void => {
    const roots = workspaceRoots(caller);
    if (roots !== null) checkWorkspace(cwd, roots);
  };
  // Checks the folder of a run that is continued in the folder of another; a run's own folder is always allowed.
  const checkSource = async (caller: Caller, id: string): Promise<void> => {
    const { spec } = await loadReadableSummary(store, id);
    if (!spec.cwd.startsWith(dirname(runFolder(dataDir, id).path) + sep)) checkFolder(caller, spec.cwd);
  };

  app.post(
    '/v1/runs',
    {
      schema: {
        operationId: 'createRun',
        summary: 'Start a run',
        tags: ['runs'],
        body: createRunBody,
        response: { 201: runView, ...REFUSALS },
      },
      config: { role: 'operator' },
    },
    async (request, reply) => {
      const { body } = request;
      const requestId = keyOf(request, body.request_id);
      const caller = callerOf(request);
      const run = await orchestrator.create(
        { ...(body as CreateRunRequest), ...(requestId === undefined ? {} : { request_id: requestId }) },
        caller.actor,
        workspaceRoots(caller),
      );
      return reply
        .code(201)
        .header('location', `/v1/runs/${run.run_id}`)
        .send(await view(run));
    },
  );

  app.get(
    '/v1/runs',
    {
      schema: {
        operationId: 'listRuns',
        summary: 'List runs, newest first',
        tags: ['runs'],
        querystring: listQuery,
        response: { 200: runList, ...REFUSALS },
      },
      config: { isExpensive: true },
    },
    async ({ log, query: { status, engine, label, cursor, limit } }) => {
      const tell = (id: string, error: unknown): void =>
        log.error({ run_id: id, err: error }, 'a run cannot be listed: its row is damaged');
      const { runs, ids } = await listReadable(
        store,
        {
          limit: limit + 1,
          ...(status ? { status } : {}),
          ...(engine ? { engine } : {}),
          ...(label ? { label: labelOf(label) } : {}),
          ...(cursor ? { before: cursor } : {}),
        },
        tell,
      );
      const byId = new Map(runs.map((run) => [run.run_id, run]));
      const listed: { readonly id: string; readonly view: RunSummaryView | null }[] = [];
      for await (const id of inGroups(ids.slice(0, limit), VIEWED_AT_ONCE)) {
        const run = byId.get(id);
        listed.push({
          id,
          view: run ? await unlessDamaged(toRunSummary(store, run, shownFor()), (damage) => tell(id, damage)) : null,
        });
      }
      const page = listed.slice(0, countFitting(listed));
      return {
        runs: page.flatMap((each) => (each.view ? [each.view as z.input<typeof runList>['runs'][number]] : [])),
        next_cursor: ids.length > page.length ? (page.at(-1)?.id ?? null) : null,
      };
    },
  );

  app.get(
    '/v1/changes',
    {
      exposeHeadRoute: false,
      schema: {
        operationId: 'streamRuns',
        summary: 'The runs as they change',
        tags: ['runs'],
        response: { 200: sse, ...REFUSALS },
      },
    },
    async (request, reply) => {
      streams.checkRoom(callerOf(request));
      void streams.serve(reply, (stream) => runFeed.feed(stream));
      return reply;
    },
  );

  app.get(
    '/v1/runs/:id',
    {
      schema: {
        operationId: 'getRun',
        summary: 'A run as it is now',
        tags: ['runs'],
        params,
        response: { 200: runView, ...REFUSALS },
      },
      config: { isWhole: true },
    },
    async ({ params: { id } }) => toWire(toSalvagedView(await salvageRun(store, id), shownFor())),
  );

  app.delete(
    '/v1/runs/:id',
    {
      schema: {
        operationId: 'deleteRun',
        summary: 'Delete an ended run with its files',
        tags: ['runs'],
        params,
        response: { 204: z.null(), ...REFUSALS },
      },
      config: { role: 'operator' },
    },
    async (request, reply) => {
      await orchestrator.delete(request.params.id, { actor: callerOf(request).actor, address: request.address });
      return reply.code(204).send(null);
    },
  );

  app.post(
    '/v1/runs/:id/cancel',
    {
      schema: {
        operationId: 'cancelRun',
        summary: 'Cancel a run; answered when nothing of its agent is left',
        tags: ['runs'],
        params,
        response: { 200: runView, ...REFUSALS },
      },
      config: { role: 'operator' },
    },
    async (request) => view(await orchestrator.cancel(request.params.id, callerOf(request).actor)),
  );

  app.post(
    '/v1/runs/:id/retry',
    {
      schema: {
        operationId: 'retryRun',
        summary: 'Start an ended run again, from its session if it has one',
        tags: ['runs'],
        params,
        body: retryBody,
        response: { 201: runView, ...REFUSALS },
      },
      config: { role: 'operator' },
    },
    async (request, reply) => {
      await checkSource(callerOf(request), request.params.id);
      const requestId = keyOf(request, request.body?.request_id);
      const run = await orchestrator.retry(
        request.params.id,
        { ...forceOf(request.body), ...(requestId === undefined ? {} : { request_id: requestId }) },
        callerOf(request).actor,
      );
      return reply.code(201).send(await view(run));
    },
  );

  for (const { word, summary, method } of [
    {
      word: 'continue',
      summary: 'Start a new run in the session of an ended one',
      method: 'continueFrom',
    },
    {
      word: 'fork',
      summary: 'Start a new run with a copy of the conversation of another, which stays as it is',
      method: 'fork',
    },
  ] as const)
    app.post(
      `/v1/runs/:id/${word}`,
      {
        schema: {
          operationId: `${word}Run`,
          summary,
          tags: ['runs'],
          params,
          body: continueBody,
          response: { 201: runView, ...REFUSALS },
        },
        config: { role: 'operator' },
      },
      async (request, reply) => {
        await checkSource(callerOf(request), request.params.id);
        const requestId = keyOf(request, request.body.request_id);
        const run = await orchestrator[method](
          request.params.id,
          {
            prompt: request.body.prompt,
            ...forceOf(request.body),
            ...(requestId === undefined ? {} : { request_id: requestId }),
          },
          callerOf(request).actor,
        );
        return reply.code(201).send(await view(run));
      },
    );
}

// The same value: the schema types have no readonly.
function toWire(run: RunView): RunWire {
  return run as RunWire;
}
