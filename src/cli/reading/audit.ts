// parley verify, replay and logs: what proves afterwards what happened. They only read.
import { realpath } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { readPieces } from '../../files/read-file.js';
import { readStoredJson } from '../../kernel/stored-json.js';
import { ByteNamer } from '../../kernel/visible-bytes.js';
import { everyRun } from '../../journal/every-run.js';
import { loadRun } from '../../journal/load-run.js';
import { rebuildConversation, tellDamage, verifyRun, type Check } from '../../audit/verify-run.js';
import { openLog } from '../../journal/open-log.js';
import { waitForFiles } from '../../journal/wait-for-files.js';
import type { RaspEvent, StreamName } from '../../rasp/event.js';
import { RequestError } from '../../run/request-error.js';
import type { DataDir } from '../../store/sqlite/data-dir.js';
import type { RunRecord } from '../../store/store.js';
import { paint } from '../../terminal/style.js';
import { withRun, withRunId } from './find-run.js';
import { hasFiles } from './check-run.js';
import type { ReadData } from '../open-data.js';
import { EXIT, LineWriter, type Io } from '../io.js';
import { dataDirOf, openReader, type DataOption } from '../data-dir.js';
import { styleOf } from '../style.js';
import { checkLine } from '../conversation/tell.js';

const ALL = { limit: Number.MAX_SAFE_INTEGER };

type JsonOption = DataOption & { readonly json?: boolean };

export async function verifyCommand(
  meant: string | undefined,
  options: JsonOption & { readonly all?: boolean },
  io: Io,
): Promise<number> {
  if ((meant === undefined) === !options.all) throw new RequestError('INVALID_ARGUMENT', 'say which run, or --all');
  if (meant !== undefined) {
    return withRunId(meant, options, io, async (data, id) => {
      return (await verifyWhole(data, id, options, io)) ? EXIT.ok : EXIT.failed;
    });
  }
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
      tellChecks(runId, tellDamage(error), options, io);
    };
    for await (const run of everyRun(data.store, damaged)) {
      if (!hasFiles(data.path, run, io)) {
        elsewhere += 1;
        continue;
      }
      checked += 1;
      if (!(await verifyWhole(data, run.run_id, options, io))) broken += 1;
    }
    if (!options.json) io.stdout.write(summarize(checked, broken));
    if (elsewhere > 0)
      io.stderr.write(
        `${elsewhere} ${elsewhere === 1 ? 'run has its' : 'runs have their'} files on another host, or none, and ` +
          `${elsewhere === 1 ? 'was' : 'were'} not looked at\n`,
      );
    return broken === 0 ? EXIT.ok : EXIT.failed;
  } finally {
    await data.close();
  }
}

function summarize(checked: number, altered: number): string {
  const counts = altered === 0 ? 'all intact' : `${checked - altered} intact, ${altered} altered`;
  return (
    `${checked} ${checked === 1 ? 'run' : 'runs'} checked: ` +
    `${checked === 0 ? 'none has its files here' : counts}.\n`
  );
}

// A directory that was meant otherwise must not look as if all were well.
function sayNone(options: JsonOption, io: Io): number {
  if (!options.json) io.stderr.write(`no runs in ${dataDirOf(options, io)}\n`);
  return EXIT.ok;
}

// A run that cannot be read is reported as damaged.
function verifyWhole(data: ReadData, runId: string, options: JsonOption, io: Io): Promise<boolean> {
  return loadRun(data.store, runId).then(
    (run) => verifyOne(data, run, options, io),
    (error: unknown) => tellChecks(runId, tellDamage(error), options, io),
  );
}

async function verifyOne(data: ReadData, run: RunRecord, options: JsonOption, io: Io): Promise<boolean> {
  checkFiles(data, run, io);
  const checks = await verifyRun(
    data.store,
    data.path,
    run,
    waitForFiles(io.timers, () => data.hasWriter()),
  );
  return tellChecks(run.run_id, checks, options, io);
}

function tellChecks(runId: string, checks: readonly Check[], { json }: JsonOption, io: Io): boolean {
  const ok = checks.every((check) => check.ok);
  if (json) io.stdout.write(`${JSON.stringify({ type: 'verified', run_id: runId, ok, checks })}\n`);
  else io.stdout.write(renderChecks(runId, ok, checks, io));
  return ok;
}

function checkFiles(data: DataDir, run: RunRecord, io: Io): void {
  if (!hasFiles(data.path, run, io))
    throw new RequestError(
      'FILES_UNREACHABLE',
      `the files of run ${run.run_id} are not in ${data.path}: they are on another host, and its server gives them`,
    );
}

function renderChecks(runId: string, ok: boolean, checks: readonly Check[], io: Io): string {
  const style = styleOf(io);
  const lines = checks.map((check) => `  ${checkLine(check, style)}`);
  return [
    `${runId}: ` +
      (ok ? paint(style, 'green', 'everything is as it was written') : paint(style, 'red', 'NOT as it was written')),
    ...lines,
    '',
  ].join('\n');
}

export async function replayCommand(
  meant: string,
  options: JsonOption & { readonly print?: boolean },
  io: Io,
): Promise<number> {
  return withRun(meant, options, io, async (data, run) => {
    const rasp = (await data.store.readJournal(run.run_id, 'rasp', ALL)).map(
      (line) => readStoredJson(line) as RaspEvent,
    );
    const stored = await data.store.readJournal(run.run_id, 'fcmp', ALL);
    const { lines, differsAt } = rebuildConversation(run.run_id, rasp, stored);
    if (options.print) await printLines(lines, io);
    else if (options.json)
      io.stdout.write(
        JSON.stringify({
          type: 'replayed',
          run_id: run.run_id,
          ok: differsAt === null,
          events: lines.length,
          differs_at: differsAt,
        }) + '\n',
      );
    else
      io.stdout.write(
        differsAt === null
          ? `${lines.length} events of the conversation rebuilt from ${rasp.length} observed ones, byte for byte ` +
              `what is stored\n`
          : `rebuilt from ${rasp.length} observed events the conversation differs from the stored one at event ` +
              `${differsAt}\n`,
      );
    return differsAt === null ? EXIT.ok : EXIT.failed;
  });
}

async function printLines(lines: readonly string[], io: Io): Promise<void> {
  const writer = new LineWriter(io);
  for (const line of lines) writer.addLine(line);
  await writer.flush();
}

export interface LogsOptions extends DataOption {
  readonly event?: number;
  readonly attempt?: number;
  readonly stream: StreamName;
  readonly from?: number;
  readonly to?: number;
  // The bytes themselves, also on a terminal.
  readonly raw?: boolean;
}

// What the engine printed: on a terminal as text that cannot control it, everywhere else byte for byte.
export async function logsCommand(meant: string, options: LogsOptions, io: Io): Promise<number> {
  return withRun(meant, options, io, async (data, run) => {
    const range =
      options.event === undefined
        ? {
            attempt: options.attempt ?? run.attempt_number,
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
        throw new RequestError(
          'INVALID_ARGUMENT',
          `${range.stream} of attempt ${range.attempt} has ${size} bytes, none from ${range.from} on`,
        );
      if (range.to !== undefined && range.to < range.from)
        throw new RequestError('INVALID_ARGUMENT', `--to ${range.to} lies before --from ${range.from}.`);
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
  return new RequestError(
    'INVALID_ARGUMENT',
    `Run ${id} has no ${stream} of attempt ${attempt}; its last attempt is ${last}.`,
  );
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
  if (line === undefined)
    throw new RequestError(
      'INVALID_ARGUMENT',
      `run ${run.run_id} has no event ${seq}; the last is ${run.heads.rasp_seq}`,
    );
  const { raw_ref: ref, event } = readStoredJson(line) as RaspEvent;
  if (!ref)
    throw new RequestError(
      'INVALID_ARGUMENT',
      `event ${seq} (${event.type}) was made by Parley: no bytes belong to it`,
    );
  return { attempt: ref.attempt_number, stream: ref.stream, from: ref.byte_from, to: ref.byte_to };
}
