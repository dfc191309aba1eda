// What proves what happened: stored events by seq and time, the engine's own bytes, the files of a run, its result, the checks.
import { lstat, realpath, type FileHandle } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { toTimestamp } from '../../kernel/clock.js';
import { readStoredJson } from '../../kernel/stored-json.js';
import { loadRun } from '../../orchestrator/load-run.js';
import { runFolder } from '../../orchestrator/run-folder.js';
import { openLog } from '../../orchestrator/open-log.js';
import { tellDamage, verifyRun } from '../../orchestrator/verify-run.js';
import { waitForFiles } from '../../orchestrator/wait-for-files.js';
import { RequestError } from '../../run/request-error.js';
import type { ReadRange } from '../../store/store.js';
import { resolveWithin } from '../allowed-paths.js';
import { listForArchive } from '../archive-run.js';
import { openInPlace, walkFiles } from '../files-of-run.js';
import { forwardFiles } from '../forward-files.js';
import { REFUSALS } from '../requests.js';
import { fileList, fileQuery, historyPage, historyQuery, logsQuery, resultView, runId, verification } from '../schemas.js';
import type { Room } from '../service.js';
import { writeTar } from '../tar.js';

const params = z.strictObject({ id: runId });
const bytes = { description: 'The bytes themselves', content: { 'application/octet-stream': { schema: z.any().meta({ type: 'string', format: 'binary' }) } } };
const archive = { description: 'A tar archive', content: { 'application/x-tar': { schema: z.any().meta({ type: 'string', format: 'binary' }) } } };
const MAX_FILES = 5000;
// Folders too: an agent may have made a million empty ones.
const MAX_ENTRIES = 10_000;

export async function evidenceRoutes({ app: bare, store, orchestrator, timers, dataDir, otherHosts = null }: Room): Promise<void> {
  const app = bare.withTypeProvider<ZodTypeProvider>();
  const preHandler = forwardFiles(store, otherHosts);
  for (const protocol of ['fcmp', 'rasp'] as const) {
    app.get(`/v1/runs/:id/${protocol === 'fcmp' ? 'events' : 'rasp'}/history`, {
      schema: { operationId: protocol === 'fcmp' ? 'readEvents' : 'readRasp', summary: 'Stored events by seq and by time; both ends belong to it', tags: ['events'], params, querystring: historyQuery, response: { 200: historyPage, ...REFUSALS } },
      // They are stored as they are sent: nothing is read and written again.
      serializerCompiler: () => (page) => (typeof page === 'string' ? page : JSON.stringify(page)),
    }, async ({ params: { id }, query }, reply) => {
      await loadRun(store, id);
      const { lines, next } = await readPage((fromSeq, limit) => store.readJournal(id, protocol, { ...rangeOf(query), limit, ...(fromSeq === null ? {} : { fromSeq }) }), query.limit);
      return reply.type('application/json; charset=utf-8').send(`{"events":[${lines.join(',')}],"next_seq":${next}}` as never);
    });
  }

  app.get('/v1/runs/:id/logs', {
    schema: { operationId: 'readLogs', summary: 'What the engine printed, byte for byte', tags: ['evidence'], params, querystring: logsQuery, response: { 200: bytes, ...REFUSALS } },
    preHandler,
  }, async ({ params: { id }, query: { attempt, stream, byte_from: from = 0, byte_to: to } }, reply) => {
    const run = await loadRun(store, id);
    const number = attempt ?? run.attempt_number;
    if (number > run.attempt_number) throw new RequestError('INVALID_ARGUMENT', `run ${id} has ${run.attempt_number} attempts, not ${number}`);
    const file = await openLog(store, await realpath(dataDir), run, { attempt: number, stream });
    return sendFile(reply, file, `${id}-${number}-${stream}.log`, from, to);
  });

  app.get('/v1/runs/:id/result', {
    schema: { operationId: 'getResult', summary: 'What came out of it', tags: ['runs'], params, response: { 200: resultView, ...REFUSALS } },
  }, async ({ params: { id } }) => {
    const { status, result, error } = await loadRun(store, id);
    return { run_id: id, status, result, error: error as z.input<typeof resultView>['error'] };
  });

  app.get('/v1/runs/:id/files', {
    schema: { operationId: 'listFiles', summary: "The files of a run's folder, without its home", tags: ['evidence'], params, response: { 200: fileList, ...REFUSALS } },
    preHandler,
  }, async ({ params: { id } }) => {
    await loadRun(store, id);
    await orchestrator.restoreFiles(id);
    const { path, home } = runFolder(dataDir, id);
    return listFiles(path, home);
  });

  app.get('/v1/runs/:id/files/content', {
    schema: { operationId: 'readFile', summary: "One file of a run's folder", tags: ['evidence'], params, querystring: fileQuery, response: { 200: bytes, ...REFUSALS } },
    preHandler,
  }, async ({ params: { id }, query: { path: asked } }, reply) => {
    await loadRun(store, id);
    const { path, home } = runFolder(dataDir, id);
    const real = resolveWithin(path, asked, home);
    const file = await openInPlace(real);
    if (!file) throw new RequestError('NOT_FOUND', 'this is not a file');
    return sendFile(reply, file, basename(real), 0, undefined);
  });

  app.get('/v1/runs/:id/archive', {
    schema: { operationId: 'downloadArchive', summary: "A run's folder as a tar archive, without its home", tags: ['evidence'], params, response: { 200: archive, ...REFUSALS } },
    preHandler,
  }, async ({ params: { id } }, reply) => {
    await loadRun(store, id);
    await orchestrator.restoreFiles(id);
    const { path, home } = runFolder(dataDir, id);
    reply.type('application/x-tar').header('content-disposition', `attachment; filename="${id}.tar"`);
    return reply.send(Readable.from(writeTar(listForArchive(path, home, id)), { objectMode: false }));
  });

  app.get('/v1/runs/:id/verify', {
    schema: { operationId: 'verifyRun', summary: 'Check that everything is as it was written', tags: ['evidence'], params, response: { 200: verification, ...REFUSALS } },
    preHandler,
  }, async ({ params: { id } }) => {
    const checks = await loadRun(store, id).then(async (run) => {
      await orchestrator.restoreFiles(id);
      return verifyRun(store, dataDir, run, waitForFiles(timers, async () => true));
    }).catch(tellDamage);
    return { run_id: id, ok: checks.every(({ ok }) => ok), checks: checks.map(({ name, ok, finding }) => ({ name, ok, finding })) };
  });
}

const CHUNK = 200;
const MAX_CHARS = 8_000_000;

// As many as were asked for, or as make a large answer; then where the next one is.
async function readPage(read: (fromSeq: number | null, limit: number) => Promise<string[]>, limit: number): Promise<{ lines: string[]; next: number | null }> {
  const lines: string[] = [];
  let chars = 0;
  for (let from: number | null = null; ; ) {
    const found = await read(from, CHUNK);
    // Times never go back: what lies within a range of them has no gap.
    const first = (readStoredJson(found[0] ?? '{"seq":0}') as { seq: number }).seq;
    for (const [index, line] of found.entries()) {
      const seq = first + index;
      if (lines.length === limit || chars > MAX_CHARS) return { lines, next: seq };
      lines.push(line);
      chars += line.length;
      from = seq + 1;
    }
    if (found.length < CHUNK) return { lines, next: null };
  }
}

function rangeOf({ from_seq: fromSeq, to_seq: toSeq, from_ts: fromTs, to_ts: toTs }: z.output<typeof historyQuery>): Omit<ReadRange, 'limit'> {
  return {
    ...(fromSeq === undefined ? {} : { fromSeq }),
    ...(toSeq === undefined ? {} : { toSeq }),
    ...(fromTs === undefined ? {} : { fromTs: Date.parse(fromTs) }),
    ...(toTs === undefined ? {} : { toTs: Date.parse(toTs) }),
  };
}

// Closed when it is sent.
async function sendFile(reply: FastifyReply, file: FileHandle | null, name: string, from: number, to: number | undefined): Promise<FastifyReply> {
  const size = (await file?.stat())?.size ?? 0;
  const end = Math.min(to ?? size, size);
  if (!file || from >= end) await file?.close();
  if (from > end) throw new RequestError('INVALID_ARGUMENT', `there are ${size} bytes; ${from} to ${to ?? size} is not within them`);
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
    if (stat) files.push({ path: shown, bytes: stat.size, modified_at: toTimestamp(Math.trunc(stat.mtimeMs)), ...(isText ? {} : { escaped: true as const }) });
  }
  return { files, truncated: truncated || looked > MAX_ENTRIES };
}
