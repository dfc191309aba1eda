// parley verify, replay and logs: check and print the recorded evidence of a run. They change nothing.
import { realpath } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { readPieces } from '../../files/read-file.js';
import { readStoredJson } from '../../kernel/stored-json.js';
import { ByteNamer } from '../../kernel/visible-bytes.js';
import { everyRun } from '../../journal/every-run.js';
import { loadRun } from '../../journal/load-run.js';
import { ConversationCheck } from '../../audit/check-conversation.js';
import { JournalScan } from '../../audit/check-journal.js';
import { viewCheck } from '../../audit/check.js';
import { describeDamage, verifyRun, type MadeCheck } from '../../audit/verify-run.js';
import { everyEvent } from '../../journal/every-event.js';
import { openLog } from '../../journal/open-log.js';
import { waitForFiles } from '../../journal/wait-for-files.js';
import type { RaspEvent, StreamName } from '../../rasp/event.js';
import { refusal, type RequestError } from '../../run/request-error.js';
import type { DataDir } from '../../store/sqlite/data-dir.js';
import type { RunRecord } from '../../store/store.js';
import { paint } from '../../terminal/style.js';
import { withRun, withRunId } from './find-run.js';
import { hasFiles } from './check-run.js';
import { ProgressLine } from './progress-line.js';
import type { ReadData } from '../open-data.js';
import { EXIT, LineWriter, type Io } from '../io.js';
import { dataDirOf, openReader, type DataOption } from '../data-dir.js';
import { styleOf } from '../style.js';
import { checkLine } from '../conversation/tell.js';
import { texts } from '../language/language.js';

const PRINT_BYTES = 64 * 1024;

type JsonOption = DataOption & { readonly json?: boolean };

export async function verifyCommand(
  runRef: string | undefined,
  options: JsonOption & { readonly all?: boolean },
  io: Io,
): Promise<number> {
  if ((runRef === undefined) === !options.all) throw refusal('INVALID_ARGUMENT.verify_which');
  const report = (runId: string, checks: readonly MadeCheck[]): boolean => reportChecks({ runId, checks }, options, io);
  if (runRef !== undefined)
    return withRunId({ ...options, runRef }, io, async (data, id) =>
      report(id, await verifyById(data, id, io)) ? EXIT.ok : EXIT.failed,
    );
  const data = await openReader(options, io);
  if (!data) return sayNone(options, io);
  try {
    if ((await data.store.listRunIds({ limit: 1 })).length === 0) return sayNone(options, io);
    let checked = 0;
    let broken = 0;
    let elsewhere = 0;
    const damaged = (runId: string, error: unknown): void => {
      checked += 1;
      broken += 1;
      report(runId, describeDamage(error));
    };
    for await (const run of everyRun(data.store, damaged)) {
      if (!hasFiles(data.path, run, io)) {
        elsewhere += 1;
        continue;
      }
      checked += 1;
      if (!report(run.run_id, await verifyById(data, run.run_id, io))) broken += 1;
    }
    if (!options.json) io.stdout.write(`${summarize(checked, broken)}\n`);
    if (elsewhere > 0)
      io.stderr.write(`${texts().say.filesElsewhere(elsewhere)}
`);
    return broken === 0 ? EXIT.ok : EXIT.failed;
  } finally {
    await data.close();
  }
}

function summarize(checked: number, altered: number): string {
  const { say } = texts();
  if (checked === 0) return say.checkedNone;
  return altered === 0 ? say.checkedAll(checked) : say.checkedSome(checked, checked - altered, altered);
}

// Reports an empty directory: a mistyped --data must not look like a successful check.
function sayNone(options: JsonOption, io: Io): number {
  if (!options.json) io.stderr.write(`${texts().say.noRunsToCheck(dataDirOf(options, io))}\n`);
  return EXIT.ok;
}

// Returns a failed check for a run that cannot be loaded.
function verifyById(data: ReadData, runId: string, io: Io): Promise<readonly MadeCheck[]> {
  return loadRun(data.store, runId).then((run) => verifyOne(data, run, io), describeDamage);
}

async function verifyOne(data: ReadData, run: RunRecord, io: Io): Promise<readonly MadeCheck[]> {
  checkFiles(data, run, io);
  const progress = new ProgressLine(io);
  return verifyRun(data.store, data.path, run, {
    waitForFiles: waitForFiles(io.timers, () => data.hasWriter()),
    onProgress: (state) => progress.show(state),
  }).finally(() => progress.end());
}

interface CheckedRun {
  readonly runId: string;
  readonly checks: readonly MadeCheck[];
}

// Prints the checks of a run, and returns whether all passed.
function reportChecks({ runId, checks }: CheckedRun, { json }: JsonOption, io: Io): boolean {
  const ok = checks.every((check) => check.ok);
  if (json)
    io.stdout.write(`${JSON.stringify({ type: 'verified', run_id: runId, ok, checks: checks.map(viewCheck) })}\n`);
  else io.stdout.write(renderChecks({ runId, checks, ok }, io));
  return ok;
}

function checkFiles(data: DataDir, run: RunRecord, io: Io): void {
  if (!hasFiles(data.path, run, io)) throw refusal('FILES_UNREACHABLE.elsewhere', { run: run.run_id, path: data.path });
}

function renderChecks({ runId, checks, ok }: CheckedRun & { readonly ok: boolean }, io: Io): string {
  const style = styleOf(io);
  const { say } = texts();
  const lines = checks.map((check) => `  ${checkLine(check, style)}`);
  return [
    say.checkedRun(runId, ok ? paint(style, 'green', say.intact) : paint(style, 'red', say.altered)),
    ...lines,
    '',
  ].join('\n');
}

export async function replayCommand(
  runRef: string,
  options: JsonOption & { readonly print?: boolean },
  io: Io,
): Promise<number> {
  return withRun({ ...options, runRef }, io, async (data, run) => {
    const conversation = new ConversationCheck(
      run.run_id,
      new JournalScan(data.store, run.run_id, { protocol: 'fcmp' }),
    );
    const writer = new LineWriter(io);
    let observed = 0;
    for await (const event of everyEvent(data.store, run.run_id)) {
      observed += 1;
      const lines = await conversation.event(event);
      if (!options.print) continue;
      for (const line of lines) writer.addLine(line);
      if (writer.pendingBytes >= PRINT_BYTES) await writer.flush();
    }
    // A turn that is running may store more at any time.
    if (run.status !== 'queued' && run.status !== 'running') await conversation.readRest();
    await writer.flush();
    const { rebuilt, differsAt } = conversation;
    if (options.json && !options.print)
      io.stdout.write(
        JSON.stringify({
          type: 'replayed',
          run_id: run.run_id,
          ok: differsAt === null,
          events: rebuilt,
          differs_at: differsAt,
        }) + '\n',
      );
    else if (!options.print) {
      const { replayed, replayDiffers } = texts().say;
      const result = differsAt === null ? replayed(rebuilt, observed) : replayDiffers(observed, differsAt);
      io.stdout.write(`${result}\n`);
    }
    return differsAt === null ? EXIT.ok : EXIT.failed;
  });
}

export interface LogsOptions extends DataOption {
  readonly event?: number;
  readonly turn?: number;
  // The earlier name of `turn`.
  readonly attempt?: number;
  readonly stream: StreamName;
  readonly from?: number;
  readonly to?: number;
  // The bytes themselves, also on a terminal.
  readonly raw?: boolean;
}

// Prints the output of the engine: on a terminal as text without control characters, elsewhere byte for byte.
export async function logsCommand(runRef: string, options: LogsOptions, io: Io): Promise<number> {
  return withRun({ ...options, runRef }, io, async (data, run) => {
    const range =
      options.event === undefined
        ? {
            attempt: options.turn ?? options.attempt ?? run.attempt_number,
            stream: options.stream,
            from: options.from ?? 0,
            to: options.to,
          }
        : await rangeOf(data, run, options.event);
    checkFiles(data, run, io);
    if (range.attempt > run.attempt_number) throw noLog(run, range);
    const file = await openLog(data.store, await realpath(data.path), run, range);
    if (!file) throw noLog(run, range);
    try {
      const { size } = await file.stat();
      const to = Math.min(range.to ?? size, size);
      if (range.from > size)
        throw refusal('INVALID_ARGUMENT.log_from', {
          stream: range.stream,
          attempt: range.attempt,
          size,
          from: range.from,
        });
      if (range.to !== undefined && range.to < range.from)
        throw refusal('INVALID_ARGUMENT.log_range', { to: range.to, from: range.from });
      if (to <= range.from) return EXIT.ok;
      const bytes = readPieces(file, range.from, to);
      if (io.terminal.stdout && !options.raw) await pipeline(bytes, nameChunks, io.stdout, { end: false });
      else await pipeline(bytes, io.stdout, { end: false });
      return EXIT.ok;
    } finally {
      await file.close();
    }
  });
}

function noLog(
  { run_id: id, attempt_number: last }: RunRecord,
  { stream, attempt }: { readonly stream: StreamName; readonly attempt: number },
): RequestError {
  return refusal('INVALID_ARGUMENT.log_attempt', { run: id, stream, attempt, last });
}

async function* nameChunks(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  const namer = new ByteNamer();
  for await (const chunk of chunks) yield namer.push(chunk);
  yield namer.end();
}

async function rangeOf(
  data: DataDir,
  run: RunRecord,
  seq: number,
): Promise<{ attempt: number; stream: StreamName; from: number; to: number }> {
  const [line] = await data.store.readJournal(run.run_id, 'rasp', { fromSeq: seq, toSeq: seq, limit: 1 });
  if (line === undefined) throw refusal('INVALID_ARGUMENT.event', { run: run.run_id, seq, last: run.heads.rasp_seq });
  const { raw_ref: ref, event } = readStoredJson(line) as RaspEvent;
  if (!ref) throw refusal('INVALID_ARGUMENT.event_bytes', { seq, type: event.type });
  return { attempt: ref.attempt_number, stream: ref.stream, from: ref.byte_from, to: ref.byte_to };
}
