// Starts one process, without a shell, as the founder of its own session; or says why it could not be started.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { access, constants, stat } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { invariant } from '../kernel/invariant.js';
import { MARK_NAME } from './process-table.js';

export interface Command {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string | null;
  // Its stdin stays open, for whoever has the process to write to.
  readonly keepsStdin?: boolean;
  readonly mark: string;
}

export interface Refusal {
  readonly started: false;
  readonly reason: 'not_found' | 'not_executable' | 'bad_cwd' | 'other';
  readonly message: string;
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

// Whether a child reads what it is told is its own affair: a closed pipe shows in what it prints and how it exits.
function feed(pipe: Writable | null, text: string): void {
  pipe?.on('error', () => {});
  pipe?.end(text);
}

// The system gives one code for several causes, so the directory is looked at first.
async function explainRefusal({ argv, cwd }: Command, error: unknown): Promise<Refusal> {
  if (!(error instanceof Error && 'code' in error)) throw error;
  const refuse = (reason: Refusal['reason'], message: string): Refusal => ({ started: false, reason, message });
  const trouble = await explainDirectory(cwd);
  if (trouble !== null) return refuse('bad_cwd', `cannot work in ${cwd}: ${trouble}`);
  if (error.code === 'ENOENT')
    return refuse('not_found', `${argv[0]} was not found, or what its first line asks for was not`);
  if (error.code === 'EACCES' || error.code === 'ENOEXEC')
    return refuse('not_executable', `${argv[0]} cannot be executed (${error.code})`);
  return refuse('other', `${argv[0]} could not be started: ${error.message}`);
}

// Why nothing can work there, or null.
export async function explainDirectory(path: string): Promise<string | null> {
  try {
    if (!(await stat(path)).isDirectory()) return 'it is not a directory';
    await access(path, constants.X_OK);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
