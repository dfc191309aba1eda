// Where the output of a turn is kept, and where in it the turn begins: at 0 in a log of its own, or where the last one
// ended in the log of an engine that stays.
import { createHash, type Hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Engine } from '../engines/engine.js';
import { openFile, readPieces, syncFile, UnsafeFileError } from '../files/read-file.js';
import { asObject } from '../kernel/json.js';
import { readStoredJson } from '../kernel/stored-json.js';
import type { RaspData, RaspEvent, StreamName } from '../rasp/event.js';
import type { RunRecord, Store } from '../store/store.js';
import type { RunFolder } from './run-folder.js';

export type LogPaths = Readonly<Record<StreamName, string>>;
export type LogEnds = Readonly<Record<StreamName, number>>;
export type ReadBytes = RaspData['lifecycle.turn.ended']['streams']['stdout'];

export const LOG_BEGIN: LogEnds = { stdout: 0, stderr: 0 };
const PAGE = 200;

export function logsOf(engine: Engine, folder: RunFolder, attempt: number): LogPaths {
  const { resident } = engine;
  if (!resident) return folder.attempt(attempt).logs;
  return { stdout: join(folder.path, resident.logs.stdout), stderr: join(folder.path, resident.logs.stderr) };
}

// Up to where the log of an engine that stays is stored as events: looked up in the journal, from its end.
export async function readEnds(store: Store, run: RunRecord): Promise<LogEnds> {
  for (let toSeq = run.heads.rasp_seq; toSeq > 0; toSeq -= PAGE) {
    const lines = await store.readJournal(run.run_id, 'rasp', {
      fromSeq: Math.max(1, toSeq - PAGE + 1),
      toSeq,
      limit: PAGE,
    });
    for (const line of lines.toReversed()) {
      const ends = endsIn(readStoredJson(line) as RaspEvent);
      if (ends) return ends;
    }
  }
  return LOG_BEGIN;
}

export function endsIn({ event, data }: RaspEvent): LogEnds | null {
  if (event.type !== 'lifecycle.turn.ended' && event.type !== 'lifecycle.process.ended') return null;
  const { stdout, stderr } = asObject(data.streams) as unknown as RaspData['lifecycle.turn.ended']['streams'];
  return { stdout: endOf(stdout), stderr: endOf(stderr) };
}

export function endOf({ from = 0, bytes }: ReadBytes): number {
  return from + bytes;
}

// Piece by piece, as the engine printed it; a log may be larger than the memory. Answers what was read.
export async function readLog(
  path: string,
  from: number,
  take: (chunk: Buffer) => void | Promise<void>,
): Promise<ReadBytes> {
  const hash = createHash('sha256');
  let bytes = 0;
  const file = await openFile(path);
  try {
    for await (const chunk of file ? readPieces(file, from, await sizeOf(file, path)) : []) {
      hash.update(chunk);
      bytes += chunk.length;
      await take(chunk);
    }
  } finally {
    await file?.close();
  }
  return { ...(from > 0 ? { from } : {}), bytes, sha256: hash.digest('hex') };
}

const SUSPECT_BYTES = 1024 ** 3;
const MOST_HOLLOW = 100;

// A file that says it is a terabyte and holds nothing was not written by an engine: reading it would take hours and
// fill the journal.
async function sizeOf(file: FileHandle, path: string): Promise<number> {
  const { size, blocks } = await file.stat();
  if (size > SUSPECT_BYTES && blocks * 512 * MOST_HOLLOW < size)
    throw new UnsafeFileError(`${path} has ${size} bytes, almost all of them holes: it is not what the engine printed`);
  return size;
}

// On the disk: what is said of its bytes then holds after a crash.
export async function syncLog(path: string): Promise<void> {
  await syncFile(path);
}

// What was read of a log so far, from where a turn began with it.
export function slice(from: number, bytes: number, hash: Hash): ReadBytes {
  return { ...(from > 0 ? { from } : {}), bytes, sha256: hash.copy().digest('hex') };
}
