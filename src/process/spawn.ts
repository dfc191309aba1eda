// Starts one process, without a shell, as the leader of a new session; or explains why it could not be started.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { access, constants, stat } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { invariant } from '../kernel/invariant.js';
import { explainReason } from '../messages/system-reason.js';
import { runError, type RunError } from '../run/run-error.js';
import { MARK_NAME } from './process-table.js';

export interface Command {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string | null;
  // Keeps stdin open, so that the owner of the process can write to it.
  readonly keepsStdin?: boolean;
  readonly mark: string;
}

export interface Refusal {
  readonly started: false;
  readonly reason: 'not_found' | 'not_executable' | 'bad_cwd' | 'other';
  readonly message: string;
  // The same as the error of a run.
  readonly error: RunError;
}

export type SpawnedProcess = ChildProcess & {
  readonly pid: number;
  readonly stdout: Readable;
  readonly stderr: Readable;
};

export async function spawnProcess(
  command: Command,
): Promise<{ readonly started: true; readonly process: SpawnedProcess } | Refusal> {
  try {
    return { started: true, process: await spawnOrThrow(command) };
  } catch (error) {
    return explainRefusal(command, error);
  }
}

async function spawnOrThrow({ argv, cwd, env, stdin, keepsStdin = false, mark }: Command): Promise<SpawnedProcess> {
  const [program, ...args] = argv;
  invariant(program, 'a command names a program');
  const child = spawn(program, args, {
    cwd,
    env: { ...env, [MARK_NAME]: mark },
    detached: true,
    stdio: [stdin === null && !keepsStdin ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  if (child.pid === undefined) {
    const [error] = await once(child, 'error');
    throw error;
  }
  if (stdin !== null) feed(child.stdin, stdin);
  return child as SpawnedProcess;
}

// Ignores errors of stdin: if the child closes the pipe, its output and its exit show it.
function feed(pipe: Writable | null, text: string): void {
  pipe?.on('error', () => {});
  pipe?.end(text);
}

// The system reports one code for several causes, so the directory is checked first.
async function explainRefusal({ argv, cwd }: Command, error: unknown): Promise<Refusal> {
  if (!(error instanceof Error && 'code' in error)) throw error;
  const refuse = (reason: Refusal['reason'], explained: RunError): Refusal => ({
    started: false,
    reason,
    message: explained.message,
    error: explained,
  });
  const program = argv[0] ?? '';
  const trouble = await explainDirectory(cwd);
  if (trouble !== null) return refuse('bad_cwd', trouble);
  if (error.code === 'ENOENT') return refuse('not_found', runError('ENGINE_NOT_FOUND.not_started', { program }));
  if (error.code === 'EACCES' || error.code === 'ENOEXEC')
    return refuse('not_executable', runError('ENGINE_NOT_FOUND.not_executable', { program, reason: error.code }));
  return refuse('other', runError('INTERNAL.program', { program, reason: error.message }));
}

// Explains why no process can work in this directory; null if one can.
export async function explainDirectory(path: string): Promise<RunError | null> {
  try {
    if (!(await stat(path)).isDirectory()) return runError('WORKING_FOLDER_UNUSABLE.not_directory', { path });
    await access(path, constants.X_OK);
    return null;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
      return runError('WORKING_FOLDER_UNUSABLE.missing', { path });
    return runError('WORKING_FOLDER_UNUSABLE.other', { path, reason: explainReason(error) });
  }
}
