// The check of one run for a server, in a process of its own: it reads the whole run, so it must neither block the
// server nor use up its memory. `verifyInChild` starts it, `verifyOneRun` is what runs there.
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { loadRun } from '../../journal/load-run.js';
import { tellDamage, verifyRun, type Check } from '../../audit/verify-run.js';
import { waitForFiles } from '../../journal/wait-for-files.js';
import { RequestError } from '../../run/request-error.js';
import { openReader } from '../data-dir.js';
import { EXIT, type Io } from '../io.js';

// Of its heap; the logs of a run come on top.
const HEAP_MB = 1024;
const LONGEST_MS = 10 * 60_000;
const MAX_ANSWER_CHARS = 1024 * 1024;

interface Assignment {
  readonly data: string;
  readonly run_id: string;
}

export function verifyInChild(
  data: string,
  io: Pick<Io, 'machine' | 'env' | 'timers'>,
  heapMb: number = HEAP_MB,
): (runId: string, signal: AbortSignal) => Promise<readonly Check[]> {
  return (runId, signal) =>
    new Promise((resolve, reject) => {
      const child = spawn(io.machine.node, [`--max-old-space-size=${heapMb}`, io.machine.entry, 'verify-one'], {
        stdio: ['pipe', 'pipe', 'ignore'],
        env: { ...io.env } as NodeJS.ProcessEnv,
      });
      const kill = (): void => void child.kill('SIGKILL');
      const cancelDeadline = io.timers.set(LONGEST_MS, kill);
      signal.addEventListener('abort', kill, { once: true });
      if (signal.aborted) kill();
      let answer = '';
      child.stdout.setEncoding('utf8').on('data', (piece: string) => {
        answer += piece;
        if (answer.length > MAX_ANSWER_CHARS) kill();
      });
      child.stdin.on('error', () => {});
      child.stdin.end(JSON.stringify({ data, run_id: runId } satisfies Assignment));
      const fail = (reason: string): void =>
        reject(
          new RequestError(
            'VERIFY_FAILED',
            `Run ${runId} was not checked: ${reason}. Check it on the server itself: parley verify ${runId}`,
          ),
        );
      child.once('error', ({ message }) => fail(`its process could not be started (${message})`));
      child.once('close', (code, ended) => {
        cancelDeadline();
        signal.removeEventListener('abort', kill);
        const checks = readChecks(answer);
        if (checks !== null && code === EXIT.ok) resolve(checks);
        else
          fail(
            signal.aborted
              ? 'the check was stopped'
              : `its process ended with ${ended ?? `exit code ${code}`}, perhaps because it needed more than ` +
                  `${heapMb} MB`,
          );
      });
    });
}

function readChecks(answer: string): readonly Check[] | null {
  try {
    return (JSON.parse(answer) as { readonly checks: readonly Check[] }).checks;
  } catch {
    return null;
  }
}

// parley verify-one: reads its assignment on stdin and prints the checks as JSON.
export async function verifyOneRun(io: Io): Promise<number> {
  const { data: path, run_id: runId } = JSON.parse(await text(io.stdin)) as Assignment;
  const data = await openReader({ data: path }, io);
  if (!data) return EXIT.failed;
  try {
    // The server that started this writes the files beside the journal.
    const checks = await loadRun(data.store, runId).then(
      (run) =>
        verifyRun(
          data.store,
          data.path,
          run,
          waitForFiles(io.timers, async () => true),
        ),
      tellDamage,
    );
    io.stdout.write(JSON.stringify({ checks }));
    return EXIT.ok;
  } finally {
    await data.close();
  }
}
