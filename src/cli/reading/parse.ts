// parley parse: converts the recorded output of an engine into RASP, FCMP or counts.
import { createReadStream } from 'node:fs';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import type { ReadStream } from 'node:tty';
import { ENGINES, findEngine } from '../../engines/registry.js';
import { createCountingIds, createIds } from '../../kernel/ids.js';
import { RecordingReader } from '../../audit/read-recording.js';
import type { RaspData } from '../../rasp/event.js';
import type { ExecutionMode } from '../../run/attempt.js';
import type { Exit } from '../../run/judge-completion.js';
import { refusal } from '../../run/request-error.js';
import { LineWriter, type Io } from '../io.js';
import { explainReason } from '../../messages/system-reason.js';
import { texts } from '../language/language.js';

export interface ParseOptions {
  readonly engine?: string;
  readonly stderr?: string;
  readonly exit: Exit;
  readonly mode: ExecutionMode;
  readonly resumedFrom?: string;
  readonly prompt: string;
  readonly fcmp?: boolean;
  readonly stats?: boolean;
  readonly reproducible?: boolean;
}

const FIXED_CLOCK = { now: () => 0 };
const ignore = (): void => {};

export async function parseRecording(options: ParseOptions, io: Io): Promise<void> {
  if (options.engine === undefined)
    throw refusal('INVALID_ARGUMENT.parse_engine', { engines: ENGINES.map(({ name }) => name).join('|') });
  const engine = findEngine(options.engine);
  const stderr = options.stderr === undefined ? null : await openFile(options.stderr);
  const clock = options.reproducible ? FIXED_CLOCK : io.clock;
  const writer = new LineWriter(io);
  const reader = new RecordingReader(
    {
      engine,
      mode: options.mode,
      prompt: options.prompt,
      resumedFrom: options.resumedFrom ?? null,
      clock,
      ids: options.reproducible ? createCountingIds() : createIds(clock),
    },
    {
      rasp: options.stats || options.fcmp ? ignore : (lines) => writer.addBytes(lines),
      fcmp: options.fcmp && !options.stats ? (lines) => writer.addBytes(lines) : ignore,
    },
  );
  if ((io.stdin as Partial<ReadStream>).isTTY) io.stderr.write(`${texts().say.readingOutput}\n`);
  await feed(io.stdin, writer, (chunk) => reader.push('stdout', chunk));
  if (stderr) await feed(stderr, writer, (chunk) => reader.push('stderr', chunk));
  const { verdict, error, transition } = reader.finish(options.exit);
  if (options.stats) {
    const ended = transition.before.find((each) => each.type === 'lifecycle.turn.ended')
      ?.data as RaspData['lifecycle.turn.ended'];
    const unknown = verdict.completion === 'unknown' ? { [verdict.reasonCode]: 1 } : {};
    const judgement = {
      rule: verdict.rule,
      event: verdict.event,
      completion: verdict.completion,
      reason_code: verdict.reasonCode,
      error: error ?? undefined,
    };
    writer.addLine(JSON.stringify({ engine: engine.name, turns: 1, ...ended.parser, unknown, judgement }));
  }
  await writer.flush();
}

async function feed(source: Readable, writer: LineWriter, push: (chunk: Buffer) => void): Promise<void> {
  for await (const chunk of source) {
    push(chunk as Buffer);
    await writer.flush();
  }
}

async function openFile(path: string): Promise<Readable> {
  try {
    // Opens the file before the command prints anything, so that it reports a wrong path at once.
    const file = createReadStream(path);
    await once(file, 'ready');
    if ((await stat(path)).isDirectory()) throw new Error(texts().say.isFolder);
    return file;
  } catch (error) {
    throw refusal('INVALID_ARGUMENT.stderr_file', { path, reason: explainReason(error) });
  }
}
