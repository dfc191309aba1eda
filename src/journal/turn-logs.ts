// Where the output of a turn is stored, and at which offset the turn starts: at 0 in its own log, or at the end of the
// previous turn in the log of a resident engine.
import { phrase } from '../messages/phrase.js';
import { createHash, type Hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Engine } from '../engines/engine.js';
import { openFile, readPieces, syncFile, UnsafeFileError } from '../files/read-file.js';
import { asObject } from '../kernel/json.js';
import type { RaspData, RaspEvent, StreamName } from '../rasp/event.js';
import type { RunRecord, Store } from '../store/store.js';
import { everyEventBefore } from './every-event.js';
import type { RunFolder } from './run-folder.js';

export type LogPaths = Readonly<Record<StreamName, string>>;
export type LogEnds = Readonly<Record<StreamName, number>>;
export type ReadBytes = RaspData['lifecycle.turn.ended']['streams']['stdout'];

export const LOG_BEGIN: LogEnds = { stdout: 0, stderr: 0 };

export function logsOf(engine: Engine, folder: RunFolder, attempt: number): LogPaths {
  const { resident } = engine;
  if (!resident) return folder.attempt(attempt).logs;
  return { stdout: join(folder.path, resident.logs.stdout), stderr: join(folder.path, resident.logs.stderr) };
}

// Returns the offset up to which the log of a resident engine is stored as events. Reads the journal from its end.
export async function readEnds(store: Store, run: RunRecord): Promise<LogEnds> {
  for await (const event of everyEventBefore(store, run.run_id, run.heads.rasp_seq)) {
    const ends = endsIn(event);
    if (ends) return ends;
  }
  return LOG_BEGIN;
}

export function endsIn({ event, data }: RaspEvent): LogEnds | null {
  if (event.type !== 'lifecycle.turn.ended' && event.type !== 'lifecycle.process.ended') return null;
  const { stdout, stderr } = asObject(data.streams) as unknown as RaspData['lifecycle.turn.ended']['streams'];
  return { stdout: endOffset(stdout), stderr: endOffset(stderr) };
}

function endOffset({ from = 0, bytes }: ReadBytes): number {
  return from + bytes;
}

// Reads the log in chunks, because it may be larger than the memory. Resolves to the size and digest of the bytes read.
export async function readLog(
  path: string,
  from: number,
  onChunk: (chunk: Buffer) => void | Promise<void>,
): Promise<ReadBytes> {
  const hash = createHash('sha256');
  let bytes = 0;
  const file = await openFile(path);
  try {
    for await (const chunk of file ? readPieces(file, from, await sizeOf(file, path)) : []) {
      hash.update(chunk);
      bytes += chunk.length;
      await onChunk(chunk);
    }
  } finally {
    await file?.close();
  }
  return { ...(from > 0 ? { from } : {}), bytes, sha256: hash.digest('hex') };
}

const SUSPECT_BYTES = 1024 ** 3;
const MOST_HOLLOW = 100;

// Refuses a sparse file of a terabyte: no engine writes one, and reading it would take hours and fill the journal.
async function sizeOf(file: FileHandle, path: string): Promise<number> {
  const { size, blocks } = await file.stat();
  if (size > SUSPECT_BYTES && blocks * 512 * MOST_HOLLOW < size)
    throw new UnsafeFileError(phrase('hollow_file', { path, size }));
  return size;
}

// Syncs the log, so that statements about its bytes stay true after a crash.
export async function syncLog(path: string): Promise<void> {
  await syncFile(path);
}

// Describes the bytes of a log read so far, from the offset where the turn started.
export function slice(from: number, bytes: number, hash: Hash): ReadBytes {
  return { ...(from > 0 ? { from } : {}), bytes, sha256: hash.copy().digest('hex') };
}
