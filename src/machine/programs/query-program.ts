// Runs a program for its version or its help, with a time limit, in a temporary home. The program writes nothing into
// the user's home, and afterwards no process and no file of it remains.
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Engine, User } from '../../engines/engine.js';
import type { ProgramAnswer } from './probe-engine.js';
import { readText } from '../../files/read-file.js';
import { createMessages, type Message } from '../../kernel/message.js';
import { startChild, type Child, type ChildEnd } from '../../process/child.js';
import { LeftBehindError } from '../../process/left-behind-error.js';
import type { Timers } from '../../process/timers.js';
import { buildEnvironment, temporaryFolder } from '../homes/environment.js';

const GRACE_MS = 500;
// A help text has a few kilobytes.
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
  // Ends the program early.
  readonly signal: AbortSignal;
}

// The shim of a version manager finds its program through the user's HOME. A program that fails with a temporary HOME
// therefore runs again with the environment of a run, which moves only the engine's own folders.
export async function queryProgram(query: Query): Promise<ProgramAnswer> {
  const { ended, ...answer } = await queryIn('temporary HOME', query);
  return ended && 'problem' in answer ? queryIn("user's HOME", query) : answer;
}

export const QUERY_TEXTS = {
  'query.not_started': 'cannot be started: {reason}',
  'query.interrupted': 'was interrupted',
  'query.endless': 'prints without end',
  'query.silent': 'does not answer within {seconds} s',
  'query.code': 'code {code}',
  'query.ended': 'ended with {how}',
  'query.complained': 'ended with {how}: {complaint}',
} as const;

const queryText = createMessages(QUERY_TEXTS);

type HomeChoice = 'temporary HOME' | "user's HOME";
type QueryResult = ProgramAnswer & {
  // The program exited by itself.
  readonly ended: boolean;
};

async function queryIn(choice: HomeChoice, query: Query): Promise<QueryResult> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'parley-query-')));
  try {
    const home = join(folder, 'home');
    mkdirSync(temporaryFolder(home), { recursive: true });
    const { engine, user, passthrough } = query;
    const env = {
      ...buildEnvironment(engine, { user, home, passthrough }),
      ...(choice === 'temporary HOME' ? { HOME: home } : {}),
    };
    return await runQuery(query, { folder, home, env });
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

interface QueryPlace {
  readonly folder: string;
  readonly home: string;
  readonly env: Record<string, string>;
}

async function runQuery(
  { program, args, limitMs, timers, signal }: Query,
  { folder, home, env }: QueryPlace,
): Promise<QueryResult> {
  const logs = { stdout: join(folder, 'stdout'), stderr: join(folder, 'stderr') };
  let bytes = 0;
  let child: Child | null = null;
  const started = await startChild(
    {
      argv: [...program, ...args],
      cwd: home,
      // Otherwise Gemini starts itself a second time, and the first process ignores signals.
      env: { ...env, GEMINI_CLI_NO_RELAUNCH: '1' },
      stdin: null,
      logs,
      // Distinguishes its processes from those of any other query.
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
  if (!started.started) return { problem: queryText('query.not_started', { reason: started.message }), ended: false };
  child = started.child;
  const stop = () => child?.end('canceled');
  signal.addEventListener('abort', stop);
  if (signal.aborted) stop();
  try {
    const end = await waitForExit(child);
    const [stdout, stderr] = [await readOutput(logs.stdout), await readOutput(logs.stderr)];
    const problem = problemOf(end, limitMs, stderr);
    const ended = end.endedByUs === null;
    return problem === null ? { stdout, stderr, ended } : { problem, ended };
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

// Reads more than the limit: output that was already on its way when the program was ended is in the file too.
async function readOutput(path: string): Promise<string> {
  return (await readText(path, { maxBytes: 16 * MAX_OUTPUT_BYTES })) ?? '';
}

// Ignores processes of the program that cannot be ended: they do not change its output.
async function waitForExit(child: Child): Promise<ChildEnd> {
  try {
    return await child.done;
  } catch (error) {
    if (error instanceof LeftBehindError && error.end) return error.end;
    throw error;
  }
}

function problemOf({ exit, endedByUs }: ChildEnd, limitMs: number, stderr: string): Message | null {
  if (endedByUs === 'canceled') return queryText('query.interrupted');
  if (endedByUs === 'runaway') return queryText('query.endless');
  if (endedByUs !== null) return queryText('query.silent', { seconds: limitMs / 1000 });
  if (exit.code === 0) return null;
  const lines = stderr
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  // Node prints the position in the source before the message.
  const complaint = lines.find((line) => /\berror\b/i.test(line)) ?? lines[0];
  const how = exit.code === null ? String(exit.signal) : queryText('query.code', { code: exit.code });
  return complaint === undefined
    ? queryText('query.ended', { how })
    : queryText('query.complained', { how, complaint: complaint.slice(0, MAX_COMPLAINT) });
}
