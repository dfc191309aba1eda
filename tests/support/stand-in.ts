// Runs a stand-in as Parley would: with the command of its engine, in its own home. The real parser reads its output,
// and the real judgement judges it.
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { EngineCommand, TurnSpec } from '../../src/engines/engine.js';
import { buildCommand, buildHandle, findEngine } from '../../src/engines/registry.js';
import { createCountingIds } from '../../src/kernel/ids.js';
import type { TurnConclusion } from '../../src/turn/conclude-turn.js';
import { RecordingReader } from '../../src/audit/read-recording.js';
import type { ExecutionMode } from '../../src/run/attempt.js';
import { afterEachFile } from './hooks.js';
import { parse, type Parsed } from './parse.js';

export const STAND_INS = ['codex', 'gemini', 'iflow', 'opencode'] as const;
export type StandIn = (typeof STAND_INS)[number];

const BIN = new URL('../stand-ins/bin/', import.meta.url).pathname;

export interface Place {
  readonly root: string;
  readonly cwd: string;
  readonly log: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface Ran {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

export interface LoggedStart {
  readonly engine: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly pid: number;
  readonly stdin: string | null;
  readonly session: string | null;
  readonly resumed: boolean;
  readonly env: Readonly<Record<string, string>>;
}

const roots: string[] = [];

afterEachFile(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true });
});

// Its own home and working directory, deleted after the tests of the file.
export function createPlace(): Place {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'parley-stand-in-')));
  const cwd = join(root, 'work');
  mkdirSync(cwd);
  roots.push(root);
  const log = join(root, 'starts.jsonl');
  return {
    root,
    cwd,
    log,
    env: { PATH: process.env['PATH'] ?? '', HOME: root, STAND_IN_LOG: log, PARLEY_TURN: 'run_1/1' },
  };
}

export interface TurnOptions extends Partial<TurnSpec> {
  // The session to continue.
  readonly resume?: string;
}

let sessions = 0;

// Full permission unless the test chooses another one: not every permission lets an engine run commands.
export function commandOf(
  engine: StandIn,
  place: Place,
  prompt: string,
  { resume, ...changes }: TurnOptions = {},
): EngineCommand {
  sessions += 1;
  // Gemini names its files after the first eight characters.
  const newSessionId = `${String(process.pid + sessions).padStart(8, '0')}-0000-4000-8000-000000000001`;
  const spec: TurnSpec = {
    program: [join(BIN, engine)],
    cwd: place.cwd,
    prompt,
    permission: 'full',
    newSessionId,
    ...changes,
  };
  const handle =
    resume === undefined ? null : buildHandle(findEngine(engine), resume, { cwd: spec.cwd, home: null, attempt: 1 });
  return buildCommand(findEngine(engine), spec, handle);
}

// Its stdin is written and closed, as in a turn, unless the test keeps it open.
export function start(
  { argv: [file = '', ...args], cwd, stdin, env }: EngineCommand,
  place: Place,
  { keepOpen = false } = {},
): ChildProcessWithoutNullStreams {
  const child = spawn(file, args, { cwd, env: { ...place.env, ...env } });
  // A process that is killed before it has read everything does not fail the test.
  child.stdin.on('error', () => {});
  if (!keepOpen) child.stdin.end(stdin ?? undefined);
  return child;
}

export async function finish(child: ChildProcessWithoutNullStreams): Promise<Ran> {
  const output = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  child.stdout.on('data', (chunk: Buffer) => output.stdout.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => output.stderr.push(chunk));
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  return { code, signal, stdout: Buffer.concat(output.stdout), stderr: Buffer.concat(output.stderr) };
}

// A command line of the test itself.
export function runArgv(
  engine: StandIn,
  place: Place,
  args: readonly string[],
  changes: Partial<EngineCommand> = {},
): Promise<Ran> {
  return finish(start({ argv: [join(BIN, engine), ...args], cwd: place.cwd, stdin: null, env: {}, ...changes }, place));
}

export interface Turn extends Ran, Parsed, Pick<TurnConclusion, 'verdict' | 'question' | 'error'> {}

export async function runTurn(
  engine: StandIn,
  place: Place,
  prompt: string,
  options: TurnOptions & { readonly mode?: ExecutionMode } = {},
): Promise<Turn> {
  const { mode, ...turn } = options;
  return judge(engine, await finish(start(commandOf(engine, place, prompt, turn), place)), {
    mode,
    resumedFrom: turn.resume,
  });
}

// Read by the real parser, which must account for every byte, and judged.
export function judge(
  engine: StandIn,
  ran: Ran,
  options: { mode?: ExecutionMode | undefined; resumedFrom?: string | undefined } = {},
): Turn {
  const reader = new RecordingReader(
    {
      engine: findEngine(engine),
      mode: options.mode ?? 'interactive',
      prompt: '',
      resumedFrom: options.resumedFrom ?? null,
      clock: { now: () => 0 },
      ids: createCountingIds(),
    },
    { rasp: () => {}, fcmp: () => {} },
  );
  reader.push('stdout', ran.stdout);
  reader.push('stderr', ran.stderr);
  const { verdict, question, error } = reader.finish({ code: ran.code, signal: ran.signal });
  return { ...ran, ...parse(engine, ran), verdict, question, error };
}

// The session that the output of a turn named.
export function sessionOf({ evidence, stderr }: Turn): string {
  expect(evidence.sessionId, stderr.toString()).not.toBeNull();
  return evidence.sessionId ?? '';
}

export function loggedStarts({ log }: Place): LoggedStart[] {
  return readFileSync(log, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as LoggedStart);
}
