// Starts a job: on the server of the data directory if one runs, otherwise in a worker process that outlives this
// command. Resolves when the id of the run is known.
import { spawn } from 'node:child_process';
import type { RequestErrorCode } from '../../contract/error-codes.js';
import type { Json } from '../../kernel/json.js';
import { RequestError, refusal } from '../../run/request-error.js';
import type { Io } from '../io.js';
import { findServer, workByServer } from '../serving/server.js';
import { isAnswer, type Answer, type Assignment } from './assignment.js';

export interface Work {
  readonly runId: string;
  // A signal arrived while the job was starting.
  readonly interrupted: boolean;
  // Whether the process that works on the run is known to be alive.
  readonly alive: () => boolean;
  // Cancels the run.
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
  // The worker gets its own session, so neither Ctrl-C nor closing the terminal reaches it.
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
  // A worker that cannot start is detected by its exit.
  child.stdin?.on('error', () => {});
  child.stdin?.end(JSON.stringify(assignment));
  let interrupted = false;
  const stops: (() => void)[] = [];
  const answer = await new Promise<Answer>((resolve, reject) => {
    const interrupt = (): void => {
      // A second interrupt stops waiting for the answer.
      if (interrupted) reject(refusal('WORKER_NOT_STARTED.interrupted'));
      interrupted = true;
    };
    stops.push(...(['SIGINT', 'SIGTERM'] as const).map((signal) => io.onSignal(signal, interrupt)));
    child.once('message', (message) => {
      if (isAnswer(message as Json)) resolve(message as Answer);
    });
    child.once('error', ({ message }) => reject(refusal('WORKER_NOT_STARTED.failed', { reason: message })));
    void ended.then(() => reject(refusal('WORKER_NOT_STARTED.ended')));
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
    // The worker may still have due work to run.
    child.unref();
    const { code, message, values, hint } = answer.error;
    throw new RequestError(code as RequestErrorCode, message, { values, hint });
  }
  // The worker continues without this command.
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
