// Has a job done: by the server of the data directory if one runs, else by a worker process that goes on by itself.
// Resolves when it is known which run it is.
import { spawn } from 'node:child_process';
import type { RequestErrorCode } from '../../contract/error-codes.js';
import type { Json } from '../../kernel/json.js';
import { RequestError } from '../../run/request-error.js';
import type { Io } from '../io.js';
import { findServer, workByServer } from '../serving/server.js';
import { isAnswer, type Answer, type Assignment } from './worker.js';

export interface Work {
  readonly runId: string;
  // A signal came while it was starting.
  readonly interrupted: boolean;
  // Whether who works on it is known to be still there.
  readonly alive: () => boolean;
  // Cancels its run.
  readonly interrupt: () => void;
}

export interface WorkerWork extends Work {
  readonly pid: number;
  readonly untilEnded: () => Promise<void>;
}

export async function startWork(assignment: Assignment, io: Io): Promise<Work> {
  const server = await findServer(assignment.data, io);
  return server ? workByServer(server, assignment.job) : startWorker(assignment, io);
}

export async function startWorker(assignment: Assignment, io: Io): Promise<WorkerWork> {
  // A session of its own: the terminal's Ctrl-C and its end do not reach it.
  const child = spawn(io.machine.node, [io.machine.entry, 'work'], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore', 'ipc'],
    env: { ...io.env } as NodeJS.ProcessEnv,
  });
  let alive = true;
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => {
      alive = false;
      resolve();
    });
  });
  // A worker that could not start says so by its end.
  child.stdin?.on('error', () => {});
  child.stdin?.end(JSON.stringify(assignment));
  let interrupted = false;
  const stops: (() => void)[] = [];
  const answer = await new Promise<Answer>((resolve, reject) => {
    const interrupt = (): void => {
      // Who says so twice does not want to wait for the answer any more.
      if (interrupted)
        reject(
          new RequestError('WORKER_NOT_STARTED', 'interrupted before it was known which run it is; parley ls shows it'),
        );
      interrupted = true;
    };
    stops.push(...(['SIGINT', 'SIGTERM'] as const).map((signal) => io.onSignal(signal, interrupt)));
    child.once('message', (message) => {
      if (isAnswer(message as Json)) resolve(message as Answer);
    });
    child.once('error', ({ message }) =>
      reject(
        new RequestError('WORKER_NOT_STARTED', `the process that is to do the work cannot be started: ${message}`),
      ),
    );
    void ended.then(() =>
      reject(
        new RequestError(
          'WORKER_NOT_STARTED',
          'the process that was to do the work ended before it began; see parley.log in the data directory',
        ),
      ),
    );
  })
    .catch((error: unknown) => {
      child.unref();
      child.channel?.unref();
      throw error;
    })
    .finally(() => {
      for (const stop of stops) stop();
    });
  if ('error' in answer) {
    // It may still have something to do that was due.
    child.unref();
    throw new RequestError(answer.error.code as RequestErrorCode, answer.error.message);
  }
  // It goes on without us.
  child.unref();
  child.channel?.unref();
  return {
    runId: answer.run_id,
    pid: child.pid ?? 0,
    interrupted,
    alive: () => alive,
    untilEnded: () => {
      child.ref();
      return ended;
    },
    interrupt: () => void child.kill('SIGINT'),
  };
}
