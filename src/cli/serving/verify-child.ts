// The check of one run for a server, in its own process with a bounded heap, so that it neither blocks the event loop
// of the server nor uses its memory. `verifyInChild` starts the process, `verifyOneRun` runs in it. The process prints
// messages as JSON lines: its progress, and at the end the checks.
import { constants, setPriority } from 'node:os';
import type { Phrase } from '../../kernel/fill-template.js';
import { phrase } from '../../messages/phrase.js';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { loadRun } from '../../journal/load-run.js';
import { describeDamage, verifyRun, type MadeCheck, type VerifyProgress } from '../../audit/verify-run.js';
import { waitForFiles } from '../../journal/wait-for-files.js';
import { parseJson } from '../../kernel/json.js';
import { refusal } from '../../run/request-error.js';
import type { OnProgress } from '../../service/evidence/verify-queue.js';
import { openReader } from '../data-dir.js';
import { EXIT, type Io } from '../io.js';

// A check needs far less, and a damaged run must not get more.
const HEAP_MB = 256;
const LONGEST_MS = 10 * 60_000;
// The interval between progress reports.
const PROGRESS_MS = 500;
const MAX_LINE_BYTES = 1024 * 1024;

interface Assignment {
  readonly data: string;
  readonly run_id: string;
}

interface Message {
  readonly progress?: VerifyProgress;
  readonly checks?: readonly MadeCheck[];
}

export function verifyInChild(
  data: string,
  io: Pick<Io, 'machine' | 'env' | 'timers'>,
  heapMb: number = HEAP_MB,
): (runId: string, signal: AbortSignal, onProgress?: OnProgress) => Promise<readonly MadeCheck[]> {
  return (runId, signal, onProgress) =>
    new Promise((resolve, reject) => {
      const child = spawn(io.machine.node, [`--max-old-space-size=${heapMb}`, io.machine.entry, 'verify-one'], {
        stdio: ['pipe', 'pipe', 'ignore'],
        env: { ...io.env } as NodeJS.ProcessEnv,
      });
      yieldCores(child.pid);
      const kill = (): void => void child.kill('SIGKILL');
      const cancelDeadline = io.timers.set(LONGEST_MS, kill);
      signal.addEventListener('abort', kill, { once: true });
      let checks: readonly MadeCheck[] | null = null;
      let lineBytes = 0;
      child.stdout.on('data', ({ length }: Buffer) => (lineBytes += length) > MAX_LINE_BYTES && kill());
      createInterface({ input: child.stdout }).on('line', (line) => {
        lineBytes = 0;
        const message = parseJson(line) as Message | undefined;
        if (message?.progress) onProgress?.(message.progress);
        if (message?.checks) checks = message.checks;
      });
      child.stdin.on('error', () => {});
      child.stdin.end(JSON.stringify({ data, run_id: runId } satisfies Assignment));
      const fail = (reason: Phrase): void => reject(refusal('VERIFY_FAILED', { run: runId, reason }));
      child.once('error', ({ message }) => fail(phrase('check_not_started', { reason: message })));
      child.once('close', (code, ended) => {
        cancelDeadline();
        signal.removeEventListener('abort', kill);
        if (checks !== null && code === EXIT.ok) resolve(checks);
        else
          fail(
            signal.aborted
              ? phrase('check_stopped')
              : phrase('check_ended', { end: ended ?? phrase('exit_code', { code: String(code) }), limit: heapMb }),
          );
      });
    });
}

// The server and the engines have priority on a busy machine.
function yieldCores(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // The process has exited, or the system does not allow it: the check only competes with others.
  }
}

// parley verify-one: reads its assignment on stdin and prints its messages.
export async function verifyOneRun(io: Io): Promise<number> {
  const { data: path, run_id: runId } = JSON.parse(await text(io.stdin)) as Assignment;
  const data = await openReader({ data: path }, io);
  if (!data) return EXIT.failed;
  const print = (message: Message): void => void io.stdout.write(`${JSON.stringify(message)}\n`);
  let next = io.clock.now() + PROGRESS_MS;
  const onProgress = (progress: VerifyProgress): void => {
    if (io.clock.now() < next) return;
    next = io.clock.now() + PROGRESS_MS;
    print({ progress });
  };
  try {
    // The server that started this writes the files beside the journal.
    const checks = await loadRun(data.store, runId).then(
      (run) =>
        verifyRun(data.store, data.path, run, { waitForFiles: waitForFiles(io.timers, async () => true), onProgress }),
      describeDamage,
    );
    print({ checks });
    return EXIT.ok;
  } finally {
    await data.close();
  }
}
