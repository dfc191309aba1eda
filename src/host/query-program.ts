// Asks a program about itself (its version, its help), with a limit of time. It lives in a throwaway home: nothing is
// written into the user's, and nothing of it is left, neither a process nor a file.
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Engine, User } from '../engines/engine.js';
import type { ProgramAnswer } from '../engines/probe.js';
import { readText } from '../files/read-file.js';
import { startChild, type Child, type ChildEnd } from '../process/child.js';
import { LeftBehindError } from '../process/left-behind-error.js';
import type { Timers } from '../process/timers.js';
import { buildEnvironment, temporaryFolder } from '../engines/environment.js';

const GRACE_MS = 500;
// A help has a few kilobytes.
const MAX_OUTPUT_BYTES = 1024 * 1024;
const MAX_COMPLAINT = 200;

export interface Query {
  readonly engine: Engine;
  readonly program: readonly string[];
  readonly args: readonly string[];
  readonly user: User;
  readonly passthrough: readonly string[];
  readonly limitMs: number;
  readonly timers: Timers;
  // Ends it early.
  readonly signal: AbortSignal;
}

// A shim of a version manager finds its program by the user's HOME: one that fails without it is asked again as a run
// would start it, where only the engine's own folders are moved.
export async function queryProgram(query: Query): Promise<ProgramAnswer> {
  const { ended, ...answer } = await queryIn('throwaway HOME', query);
  return ended && 'problem' in answer ? queryIn("user's HOME", query) : answer;
}

type Given = 'throwaway HOME' | "user's HOME";
// Ended: by itself.
type Played = ProgramAnswer & { readonly ended: boolean };

async function queryIn(given: Given, query: Query): Promise<Played> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'parley-query-')));
  try {
    const home = join(folder, 'home');
    mkdirSync(temporaryFolder(home), { recursive: true });
    const { engine, user, passthrough } = query;
    const env = {
      ...buildEnvironment(engine, user, home, passthrough),
      ...(given === 'throwaway HOME' ? { HOME: home } : {}),
    };
    return await play(query, folder, home, env);
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function play(
  { program, args, limitMs, timers, signal }: Query,
  folder: string,
  cwd: string,
  env: Record<string, string>,
): Promise<Played> {
  const logs = { stdout: join(folder, 'stdout'), stderr: join(folder, 'stderr') };
  let bytes = 0;
  let child: Child | null = null;
  const started = await startChild(
    {
      argv: [...program, ...args],
      cwd,
      // Gemini would start itself a second time, and the first would ignore signals.
      env: { ...env, GEMINI_CLI_NO_RELAUNCH: '1' },
      stdin: null,
      logs,
      // Tells its processes from those of any other query.
      mark: folder,
      turnTimeoutMs: limitMs,
      idleTimeoutMs: limitMs,
      graceMs: GRACE_MS,
    },
    {
      onChunk: (_stream, chunk) => {
        bytes += chunk.length;
        if (bytes > MAX_OUTPUT_BYTES) child?.end('runaway');
      },
    },
    timers,
  );
  if (!started.started) return { problem: `cannot be started: ${started.message}`, ended: false };
  child = started.child;
  const stop = () => child?.end('canceled');
  signal.addEventListener('abort', stop);
  if (signal.aborted) stop();
  try {
    const end = await endOf(child);
    const [stdout, stderr] = [await readOutput(logs.stdout), await readOutput(logs.stderr)];
    const problem = problemOf(end, limitMs, stderr);
    const ended = end.endedByUs === null;
    return problem === null ? { stdout, stderr, ended } : { problem, ended };
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

// It is ended when it has printed more than the limit; what was on its way by then is read, too.
async function readOutput(path: string): Promise<string> {
  return (await readText(path, { maxBytes: 16 * MAX_OUTPUT_BYTES })) ?? '';
}

// What it left behind in a way that cannot be ended is not what was asked.
async function endOf(child: Child): Promise<ChildEnd> {
  try {
    return await child.done;
  } catch (error) {
    if (error instanceof LeftBehindError && error.end) return error.end;
    throw error;
  }
}

function problemOf({ exit, endedByUs }: ChildEnd, limitMs: number, stderr: string): string | null {
  if (endedByUs === 'canceled') return 'was interrupted';
  if (endedByUs === 'runaway') return 'prints without end';
  if (endedByUs !== null) return `does not answer within ${limitMs / 1000} s`;
  if (exit.code === 0) return null;
  const lines = stderr
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  // Node says where before it says what.
  const complaint = lines.find((line) => /\berror\b/i.test(line)) ?? lines[0];
  const how = exit.code === null ? exit.signal : `code ${exit.code}`;
  return `ended with ${how}${complaint === undefined ? '' : `: ${complaint.slice(0, MAX_COMPLAINT)}`}`;
}
