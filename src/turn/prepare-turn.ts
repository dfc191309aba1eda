// Makes everything ready that a turn needs before its engine is started: its folders, the home of the run, the session
// that it begins with a copy of, the environment.
import { realpath } from 'node:fs/promises';
import { invariant } from '../kernel/invariant.js';
import { explainDirectory } from '../process/spawn.js';
import type { RunError } from '../run/judge-completion.js';
import { TurnRefusedError } from '../run/turn-refused-error.js';
import type { RunRecord } from '../store/store.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { forkSource } from './fork-source.js';
import { makeFolder, runFolder, type AttemptFolder } from '../journal/run-folder.js';
import type { TurnScene } from './turn-scene.js';

export type Prepared =
  | { readonly attempt: AttemptFolder; readonly env: Readonly<Record<string, string>> }
  | { readonly refused: RunError };

export async function prepareTurn(scene: TurnScene, ask: readonly string[] | null): Promise<Prepared> {
  try {
    return await prepare(scene, ask);
  } catch (error) {
    if (error instanceof TurnRefusedError) return { refused: { code: error.code, message: error.message } };
    // What the machine refuses to a resumed turn is a resume that failed; to a first one it is not to be expected.
    if (scene.handle === null || !isSystemError(error)) throw error;
    return { refused: { code: 'INTERNAL', message: error.message } };
  }
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';
}

async function prepare({ deps, engine, handle, writer }: TurnScene, ask: readonly string[] | null): Promise<Prepared> {
  const { run } = writer;
  const folder = runFolder(deps.dataDir, run.run_id);
  const attempt = folder.attempt(run.attempt_number);
  makeFolder(attempt.path);
  // Not when the run is created: a crash right after that would leave a queued run without it.
  if (handle === null && run.spec.cwd === folder.workspace) makeFolder(folder.workspace);
  if (run.spec.home !== null) makeFolder(run.spec.home);
  if (handle === null && !(await copySource(deps, run))) {
    return {
      refused: {
        code: 'SESSION_RESUME_FAILED',
        message:
          `The session of run ${run.spec.fork_from?.run_id} is not there any more: there is nothing to ` +
          'begin with a copy of.',
      },
    };
  }
  // A session's folder was looked at before; another is never taken for it.
  const trouble = handle === null ? await explainFolder(run.spec.cwd) : null;
  if (trouble !== null)
    return { refused: { code: 'WORKING_FOLDER_UNUSABLE', message: `cannot work in ${run.spec.cwd}: ${trouble}` } };
  return { attempt, env: await deps.host.environment(engine, run, { ask, resumed: handle }) };
}

// Into the home of the run: the source goes on in its own, whatever becomes of the copy.
async function copySource({ host }: OrchestratorDeps, run: RunRecord): Promise<boolean> {
  const source = forkSource(run.spec);
  if (source === null) return true;
  invariant(
    host.copySession && run.spec.home !== null,
    'the host can copy a session, and the run has a home of its own',
  );
  return host.copySession(source.handle, run.spec.home);
}

// It was stored as the folder itself: if it leads elsewhere now, it is another.
export async function explainFolder(cwd: string): Promise<string | null> {
  const trouble = await explainDirectory(cwd);
  if (trouble !== null) return trouble;
  const real = await realpath(cwd);
  return real === cwd ? null : `it leads to ${real} now`;
}
