// parley compact: makes the database of a data directory as small as possible. An interruption loses nothing; repeat
// the command.
import { constants, statfsSync } from 'node:fs';
import { RequestError, refusal } from '../../run/request-error.js';
import { describeWriter, readWriter } from '../../store/sqlite/data-dir.js';
import { compactDataDir, type Compacted } from '../../store/sqlite/space/compact.js';
import { formatSize } from '../../terminal/format-time.js';
import { checkFolder, dataDirOf, type DataOption } from '../data-dir.js';
import { EXIT, type Io } from '../io.js';
import { texts } from '../language/language.js';
import { databaseUrl } from '../open-data.js';
import { writerOf } from '../writer-of.js';

// How many runs are named; --json names all.
const NAMED = 10;

export interface CompactCommandOptions extends DataOption {
  readonly json?: boolean;
}

export async function compactCommand(options: CompactCommandOptions, io: Io): Promise<number> {
  if (databaseUrl(io) !== null) throw refusal('INVALID_ARGUMENT.compact_database');
  const path = dataDirOf(options, io);
  checkFolder(path, constants.R_OK | constants.W_OK | constants.X_OK);
  const progress = options.json || !io.terminal.stderr ? null : createProgress(io);
  let compacted: Compacted | null;
  try {
    compacted = await compactDataDir(path, writerOf(io), {
      checkSpace: (bytes) => checkSpace(path, bytes),
      onPacked: progress?.show ?? (() => {}),
    });
  } catch (error) {
    if (!(error instanceof RequestError) || error.code !== 'DATA_DIR_IN_USE') throw error;
    throw refusal('DATA_DIR_IN_USE.compact', { path, writer: describeWriter(readWriter(path)) });
  } finally {
    progress?.erase();
  }
  if (!compacted) throw refusal('INVALID_ARGUMENT.compact_empty', { path });
  report(compacted, { path, json: options.json ?? false }, io);
  return EXIT.ok;
}

function checkSpace(path: string, needed: number): void {
  const { bavail, bsize } = statfsSync(path);
  const free = bavail * bsize;
  if (free >= needed) return;
  throw refusal('STORE_UNAVAILABLE.compact_space', { path, needed: formatSize(needed), free: formatSize(free) });
}

// In one line on a terminal.
function createProgress(io: Io): { show(runs: number, total: number): void; erase(): void } {
  const { compact: t } = texts();
  const write = (text: string): void => void io.stderr.write(`\r\u001b[2K${text}`);
  return {
    show: (runs, total) => {
      if (runs === total) write(t.rewriting);
      else if (runs % Math.ceil(total / 100) === 0) write(t.packing(runs, total));
    },
    erase: () => write(''),
  };
}

function report(
  { before, after, damaged, isHeldUp }: Compacted,
  { path, json }: { readonly path: string; readonly json: boolean },
  io: Io,
): void {
  const { compact: t } = texts();
  if (json) {
    const line = { type: 'compact', data: path, before, after, damaged, held_up: isHeldUp };
    io.stdout.write(`${JSON.stringify(line)}\n`);
    return;
  }
  io.stdout.write(`${t.done(formatSize(before), formatSize(after))}\n`);
  if (damaged.length > 0) io.stderr.write(`${t.damaged(named(damaged))}\n`);
  if (isHeldUp) io.stderr.write(`${t.heldUp}\n`);
}

function named(runs: readonly string[]): string {
  const { more, names } = texts().compact;
  return [...runs.slice(0, NAMED), ...(runs.length > NAMED ? [more(runs.length - NAMED)] : [])].join(names);
}
