// What proves what happened: stored events by seq and time, the engine's own bytes, the files of a run, its result, the
// checks.
import { lstat, realpath, type FileHandle } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { toTimestamp } from '../../kernel/clock.js';
import { isStored } from '../../journal/every-run.js';
import { loadReadable, loadReadableSummary } from '../../journal/load-run.js';
import { runFolder } from '../../journal/run-folder.js';
import { openLog } from '../../journal/open-log.js';
import { RequestError } from '../../run/request-error.js';
import type { ReadRange, RunRecord } from '../../store/store.js';
import { callerOf, traceOf } from '../access/access.js';
import { resolveWithin } from '../access/allowed-paths.js';
import { listForArchive } from '../evidence/archive-run.js';
import { callerKey } from '../access/caller-limits.js';
import { openInPlace, walkFiles } from '../evidence/files-of-run.js';
import { forwardFiles } from '../evidence/forward-files.js';
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
} from '../schemas.js';
import type { Room } from '../service.js';
import { writeTar } from '../evidence/tar.js';

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
// Folders too: an agent may have made a million empty ones.
const MAX_ENTRIES = 10_000;

export async function evidenceRoutes({
  app: bare,
  store,
  access,
  clock,
  checks,
  orchestrator,
  dataDir,
  otherHosts = null,
}: Room): Promise<void> {
  const app = bare.withTypeProvider<ZodTypeProvider>();
  const reading = { preHandler: forwardFiles(store, otherHosts), config: { isExpensive: true } };
  // By the host that the caller asked, not again by the one that has the files.
  const recordDownload = async (request: FastifyRequest): Promise<void> => {
    const { id = '' } = request.params as { readonly id?: string };
    if (callerOf(request).isHost) return;
    if (!(await isStored(store, id))) throw new RequestError('RUN_NOT_FOUND', `there is no run ${id}`);
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
        // They are stored as they are sent: nothing is read and written again.
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
    async ({ params: { id }, query: { attempt, stream, byte_from: from = 0, byte_to: to } }, reply) => {
      const run = await loadReadableSummary(store, id);
      const number = attempt ?? run.attempt_number;
      if (number > run.attempt_number)
        throw new RequestError('INVALID_ARGUMENT', `run ${id} has ${run.attempt_number} attempts, not ${number}`);
      const file = await openLog(store, await realpath(dataDir), run, { attempt: number, stream });
      return sendFile(reply, file, `${id}-${number}-${stream}.log`, from, to);
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
      if (!file) throw new RequestError('NOT_FOUND', 'this is not a file');
      return sendFile(reply, file, basename(real), 0, undefined);
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
        tags: ['evidence'],
        params,
        response: { 200: verification, ...REFUSALS },
      },
      ...reading,
    },
    async (request, reply) => {
      const { id } = request.params;
      // A damaged run is checked, one that does not exist is refused before it waits for its turn.
      if (!(await isStored(store, id))) throw new RequestError('RUN_NOT_FOUND', `there is no run ${id}`);
      await orchestrator.restoreFiles(id);
      const left = new AbortController();
      reply.raw.once('close', () => left.abort());
      if (reply.raw.destroyed) left.abort();
      const found = await checks.check(id, callerKey(callerOf(request)), left.signal);
      return {
        run_id: id,
        ok: found.every(({ ok }) => ok),
        checks: found.map(({ name, ok, finding }) => ({ name, ok, finding })),
      };
    },
  );
}

// From created_at on is from the first event on: runs of earlier versions have a first event a moment before it.
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

// Closed when it is sent.
async function sendFile(
  reply: FastifyReply,
  file: FileHandle | null,
  name: string,
  from: number,
  to: number | undefined,
): Promise<FastifyReply> {
  const size = (await file?.stat())?.size ?? 0;
  const end = Math.min(to ?? size, size);
  if (!file || from >= end) await file?.close();
  if (from > end)
    throw new RequestError('INVALID_ARGUMENT', `there are ${size} bytes; ${from} to ${to ?? size} is not within them`);
  reply
    .type('application/octet-stream')
    .header('content-disposition', `attachment; filename="${name.replaceAll(/[^\w.-]/g, '_')}"`)
    .header('content-length', end - from);
  return reply.send(!file || end === from ? Buffer.alloc(0) : file.createReadStream({ start: from, end: end - 1 }));
}

// Links are named by nothing: what they lead to is not of this run. There is room for other work in between.
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
