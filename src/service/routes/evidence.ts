// The evidence of a run: stored events by seq and time, the output of the engine, files, the result and the checks.
import { lstat, realpath, type FileHandle } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import * as z from 'zod';
import { toTimestamp } from '../../kernel/clock.js';
import { isStored } from '../../journal/every-run.js';
import { loadReadable, loadReadableSummary } from '../../journal/load-run.js';
import { runFolder } from '../../journal/run-folder.js';
import { openLog } from '../../journal/open-log.js';
import { refusal } from '../../run/request-error.js';
import type { ReadRange, RunRecord } from '../../store/store.js';
import { callerOf, traceOf } from '../access/access.js';
import { resolveWithin } from '../access/allowed-paths.js';
import { explain, logFailure } from '../api/error-envelope.js';
import { listForArchive } from '../evidence/archive-run.js';
import { callerKey } from '../access/caller-limits.js';
import { openInPlace, walkFiles } from '../evidence/files-of-run.js';
import { forwardFiles } from '../evidence/forward-files.js';
import { forwardVerify } from '../evidence/forward-verify.js';
import { checkAsLines, describeChecks } from '../evidence/verify-lines.js';
import { readHistory } from '../history-page.js';
import { REFUSALS } from '../requests.js';
import {
  fileList,
  fileQuery,
  historyPage,
  historyQuery,
  logsQuery,
  resultView,
  runId,
  verification,
  verifyLine,
  verifyQuery,
} from '../schemas.js';
import type { RouteContext } from '../service.js';
import { writeTar } from '../evidence/tar.js';
import { leftSignal } from '../streams/left-signal.js';

const params = z.strictObject({ id: runId });
const bytes = {
  description: 'The bytes themselves',
  content: { 'application/octet-stream': { schema: z.any().meta({ type: 'string', format: 'binary' }) } },
};
const archive = {
  description: 'A tar archive',
  content: { 'application/x-tar': { schema: z.any().meta({ type: 'string', format: 'binary' }) } },
};
const MAX_FILES = 5000;
// Counts folders as well: an agent may have created a million empty ones.
const MAX_ENTRIES = 10_000;

export async function evidenceRoutes({
  app: bare,
  store,
  access,
  clock,
  timers,
  checks,
  orchestrator,
  dataDir,
  otherHosts = null,
}: RouteContext): Promise<void> {
  const app = bare.withTypeProvider<ZodTypeProvider>();
  const reading = { preHandler: forwardFiles(store, otherHosts), config: { isExpensive: true } };
  // Recorded by the host that received the request, not again by the host that has the files.
  const recordDownload = async (request: FastifyRequest): Promise<void> => {
    const { id = '' } = request.params as { readonly id?: string };
    if (callerOf(request).isHost) return;
    if (!(await isStored(store, id))) throw refusal('RUN_NOT_FOUND.unknown', { run: id });
    await access.appendAudit({ ...traceOf(request, clock.now()), type: 'archive.downloaded', body: { run_id: id } });
  };
  for (const protocol of ['fcmp', 'rasp'] as const) {
    app.get(
      `/v1/runs/:id/${protocol === 'fcmp' ? 'events' : 'rasp'}/history`,
      {
        schema: {
          operationId: protocol === 'fcmp' ? 'readEvents' : 'readRasp',
          summary: 'Stored events by seq and by time; both ends belong to it',
          tags: ['events'],
          params,
          querystring: historyQuery,
          response: { 200: historyPage, ...REFUSALS },
        },
        config: { isExpensive: true },
        // Events are stored as they are sent, so they are not parsed and serialized again.
        serializerCompiler: () => (page) => (typeof page === 'string' ? page : JSON.stringify(page)),
      },
      async ({ params: { id }, query }, reply) => {
        const run = await loadReadableSummary(store, id);
        const { heads } = run;
        const head = protocol === 'rasp' ? heads.rasp_seq : heads.fcmp_seq;
        const { lines, next, damaged } = await readHistory(store, {
          runId: id,
          protocol,
          range: rangeOf(query, run),
          limit: query.limit,
          head,
        });
        const rest = damaged.length === 0 ? '' : `,"damaged":${JSON.stringify(damaged)}`;
        return reply
          .type('application/json; charset=utf-8')
          .send(`{"events":[${lines.join(',')}],"next_seq":${next}${rest}}` as never);
      },
    );
  }

  app.get(
    '/v1/runs/:id/logs',
    {
      schema: {
        operationId: 'readLogs',
        summary: 'What the engine printed, byte for byte',
        tags: ['evidence'],
        params,
        querystring: logsQuery,
        response: { 200: bytes, ...REFUSALS },
      },
      ...reading,
    },
    async ({ params: { id }, query: { attempt, stream, byte_from: from, byte_to: to } }, reply) => {
      const run = await loadReadableSummary(store, id);
      const number = attempt ?? run.attempt_number;
      if (number > run.attempt_number)
        throw refusal('INVALID_ARGUMENT.attempt', { run: id, last: run.attempt_number, attempt: number });
      const file = await openLog(store, await realpath(dataDir), run, { attempt: number, stream });
      return sendFile(reply, file, { name: `${id}-${number}-${stream}.log`, from, to });
    },
  );

  app.get(
    '/v1/runs/:id/result',
    {
      schema: {
        operationId: 'getResult',
        summary: 'What came out of it',
        tags: ['runs'],
        params,
        response: { 200: resultView, ...REFUSALS },
      },
      config: { isWhole: true },
    },
    async ({ params: { id } }) => {
      const { status, result, error } = await loadReadable(store, id);
      return { run_id: id, status, result, error: error as z.input<typeof resultView>['error'] };
    },
  );

  app.get(
    '/v1/runs/:id/files',
    {
      schema: {
        operationId: 'listFiles',
        summary: "The files of a run's folder, without its home",
        tags: ['evidence'],
        params,
        response: { 200: fileList, ...REFUSALS },
      },
      ...reading,
    },
    async ({ params: { id } }) => {
      await loadReadableSummary(store, id);
      await orchestrator.restoreFiles(id);
      const { path, home } = runFolder(dataDir, id);
      return listFiles(path, home);
    },
  );

  app.get(
    '/v1/runs/:id/files/content',
    {
      schema: {
        operationId: 'readFile',
        summary: "One file of a run's folder",
        tags: ['evidence'],
        params,
        querystring: fileQuery,
        response: { 200: bytes, ...REFUSALS },
      },
      ...reading,
    },
    async ({ params: { id }, query: { path: asked } }, reply) => {
      await loadReadableSummary(store, id);
      const { path, home } = runFolder(dataDir, id);
      const real = resolveWithin(path, asked, home);
      const file = await openInPlace(real);
      if (!file) throw refusal('NOT_FOUND.not_a_file');
      return sendFile(reply, file, { name: basename(real) });
    },
  );

  app.get(
    '/v1/runs/:id/archive',
    {
      schema: {
        operationId: 'downloadArchive',
        summary: "A run's folder as a tar archive, without its home",
        tags: ['evidence'],
        params,
        response: { 200: archive, ...REFUSALS },
      },
      ...reading,
      preHandler: [recordDownload, reading.preHandler],
    },
    async ({ params: { id } }, reply) => {
      await loadReadableSummary(store, id);
      await orchestrator.restoreFiles(id);
      const { path, home } = runFolder(dataDir, id);
      reply.type('application/x-tar').header('content-disposition', `attachment; filename="${id}.tar"`);
      return reply.send(Readable.from(writeTar(listForArchive(path, home, id)), { objectMode: false }));
    },
  );

  app.get(
    '/v1/runs/:id/verify',
    {
      schema: {
        operationId: 'verifyRun',
        summary: 'Check that everything is as it was written',
        description:
          'With progress=true the response is application/x-ndjson: lines of the type waiting while other checks ' +
          'run, of the type progress while this one runs, then one line of the type result or error. The first line ' +
          'comes at once, and another one at least every five seconds.',
        tags: ['evidence'],
        params,
        querystring: verifyQuery,
        response: {
          200: {
            description: 'The checks, or lines with the progress and the checks',
            content: {
              'application/json': { schema: verification },
              'application/x-ndjson': { schema: verifyLine },
            },
          },
          ...REFUSALS,
        },
      },
      ...reading,
      preHandler: forwardVerify(store, otherHosts, timers),
    },
    async (request, reply) => {
      const { id } = request.params;
      // A damaged run is checked; an unknown run is refused before it waits in the queue.
      if (!(await isStored(store, id))) throw refusal('RUN_NOT_FOUND.unknown', { run: id });
      const caller = { key: callerKey(callerOf(request)), left: leftSignal(reply) };
      if (request.query.progress !== 'true') return describeChecks(id, await checks.check(id, caller));
      const lines = checkAsLines(checks, id, caller, {
        timers,
        explain: (error) => {
          const refused = explain(error, request);
          logFailure(request, refused, error);
          return refused;
        },
      });
      return reply.type('application/x-ndjson').send(lines as never);
    },
  );
}

// A range that starts at created_at includes the first event: in runs of earlier versions it is slightly older.
function rangeOf(
  { from_seq: fromSeq, to_seq: toSeq, from_ts: fromTs, to_ts: toTs }: z.output<typeof historyQuery>,
  run: Pick<RunRecord, 'created_at'>,
): Omit<ReadRange, 'limit'> {
  return {
    ...(fromSeq === undefined ? {} : { fromSeq }),
    ...(toSeq === undefined ? {} : { toSeq }),
    ...(fromTs === undefined || Date.parse(fromTs) <= run.created_at ? {} : { fromTs: Date.parse(fromTs) }),
    ...(toTs === undefined ? {} : { toTs: lastMs(toTs) }),
  };
}

// The last millisecond that a time names: 12:00:05Z is the whole second.
function lastMs(text: string): number {
  const [, seconds, fraction = ''] = /T\d{2}:\d{2}(:\d{2})?(?:\.(\d+))?/.exec(text) ?? [];
  if (seconds === undefined) return Date.parse(text) + 59_999;
  return Date.parse(text) + 10 ** Math.max(0, 3 - fraction.length) - 1;
}

// Sends the bytes from `from` to `to` of a file as a download, and closes the file. Null is an empty file.
async function sendFile(
  reply: FastifyReply,
  file: FileHandle | null,
  {
    name,
    from = 0,
    to,
  }: { readonly name: string; readonly from?: number | undefined; readonly to?: number | undefined },
): Promise<FastifyReply> {
  const size = (await file?.stat())?.size ?? 0;
  const end = Math.min(to ?? size, size);
  if (!file || from >= end) await file?.close();
  if (from > end) throw refusal('INVALID_ARGUMENT.byte_range', { size, from, to: to ?? size });
  reply
    .type('application/octet-stream')
    .header('content-disposition', `attachment; filename="${name.replaceAll(/[^\w.-]/g, '_')}"`)
    .header('content-length', end - from);
  return reply.send(!file || end === from ? Buffer.alloc(0) : file.createReadStream({ start: from, end: end - 1 }));
}

// Links are left out: their targets do not belong to the run. Other work runs between the reads.
async function listFiles(folder: string, home: string): Promise<z.input<typeof fileList>> {
  const files: z.input<typeof fileList>['files'] = [];
  const root = await realpath(folder).catch(() => null);
  let looked = 0;
  let truncated = false;
  if (root === null) return { files, truncated };
  const rules = { onEntry: () => (looked += 1) <= MAX_ENTRIES, onUnreadable: () => void (truncated = true) };
  for await (const { path, shown, isText } of walkFiles(root, join(root, relative(folder, home)), rules)) {
    if (files.length === MAX_FILES) return { files, truncated: true };
    const stat = await lstat(path).catch(() => null);
    if (stat)
      files.push({
        path: shown,
        bytes: stat.size,
        modified_at: toTimestamp(Math.trunc(stat.mtimeMs)),
        ...(isText ? {} : { escaped: true as const }),
      });
  }
  return { files, truncated: truncated || looked > MAX_ENTRIES };
}
