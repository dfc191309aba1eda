// Prepares everything that a turn needs before its engine starts: its folders, the home of the run, the session that it
// starts with a copy of, and the environment.
import { realpath } from 'node:fs/promises';
import { invariant } from '../kernel/invariant.js';
import { explainDirectory } from '../process/spawn.js';
import { runError, type RunError } from '../run/run-error.js';
import { TurnRefusedError } from '../run/turn-refused-error.js';
import type { RunRecord } from '../store/store.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { forkSource } from './fork-source.js';
import { makeFolder, runFolder, type AttemptFolder } from '../journal/run-folder.js';
import type { TurnContext } from './turn-context.js';

export type Prepared =
  | { readonly attempt: AttemptFolder; readonly env: Readonly<Record<string, string>> }
  | { readonly refused: RunError };

export async function prepareTurn(context: TurnContext, ask: readonly string[] | null): Promise<Prepared> {
  try {
    return await prepare(context, ask);
  } catch (error) {
    if (error instanceof TurnRefusedError) return { refused: error.error };
    // A system error in a resumed turn is a failed resume; in a first turn it is unexpected.
    if (context.handle === null || !isSystemError(error)) throw error;
    return { refused: runError('INTERNAL.preparation', { reason: error.message }) };
  }
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';
}

async function prepare(
  { deps, engine, handle, writer }: TurnContext,
  ask: readonly string[] | null,
): Promise<Prepared> {
  const { run } = writer;
  const folder = runFolder(deps.dataDir, run.run_id);
  const attempt = folder.attempt(run.attempt_number);
  makeFolder(attempt.path);
  // Created here and not with the run: a crash right after that would leave a queued run without the folder.
  if (handle === null && run.spec.cwd === folder.workspace) makeFolder(folder.workspace);
  if (run.spec.home !== null) makeFolder(run.spec.home);
  if (handle === null && !(await copySource(deps, run))) {
    return { refused: runError('SESSION_RESUME_FAILED.fork_source', { run: run.spec.fork_from?.run_id ?? '' }) };
  }
  // The folder of a session was checked before; another folder never replaces it.
  const trouble = handle === null ? await explainFolder(run.spec.cwd) : null;
  if (trouble !== null) return { refused: trouble };
  return { attempt, env: await deps.runtime.environment(engine, run, { ask, resumed: handle }) };
}

// Copies into the home of the run, so that the source and the copy continue independently.
async function copySource({ runtime }: Pick<OrchestratorDeps, 'runtime'>, run: RunRecord): Promise<boolean> {
  const source = forkSource(run.spec);
  if (source === null) return true;
  invariant(
    runtime.copySession && run.spec.home !== null,
    'the runtime can copy a session, and the run has its own home',
  );
  return runtime.copySession(source.handle, run.spec.home);
}

// The spec stores the resolved path: if it leads elsewhere now, it is another folder.
export async function explainFolder(cwd: string): Promise<RunError | null> {
  const resolving = realpath(cwd);
  // Not unhandled while the folder is checked, which explains more.
  resolving.catch(() => {});
  const trouble = await explainDirectory(cwd);
  if (trouble !== null) return trouble;
  const real = await resolving;
  return real === cwd ? null : runError('WORKING_FOLDER_UNUSABLE.moved', { path: cwd, real });
}
