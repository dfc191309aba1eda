// Explains why a turn cannot start, as far as that is known before anything is started. An answer is never given to
// another conversation than the one that asked.
import type { Engine } from '../engines/engine.js';
import { explainMismatch } from '../engines/registry.js';
import { explainDirectory } from '../process/spawn.js';
import { asResumeFailure } from '../run/judge-completion.js';
import { runError, type RunError } from '../run/run-error.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { RunRecord } from '../store/store.js';
import { explainFolder } from './prepare-turn.js';

export interface ResumedTurn {
  readonly engine: Engine;
  readonly run: RunRecord;
  // The session that the turn resumes; null: none is stored.
  readonly handle: EngineSessionHandle | null;
  // Whether a process of the run waits for the answer.
  readonly hasProcess: boolean;
}

export async function explainObstacle({ engine, run, handle, hasProcess }: ResumedTurn): Promise<RunError | null> {
  if (handle === null) return run.attempt_number > 1 ? runError('SESSION_RESUME_FAILED.not_stored') : null;
  if (handle.handle_type === 'process' && !hasProcess) return runError('INTERACTION_PROCESS_LOST');
  // A session loses its work without its folder, and is itself lost without its home.
  const mismatch = explainMismatch(engine, run.spec.cwd, handle);
  if (mismatch !== null) return asResumeFailure(mismatch);
  const trouble = await explainFolder(run.spec.cwd);
  if (trouble !== null) return asResumeFailure(trouble);
  const { home } = handle;
  if (home === null || (await explainDirectory(home)) === null) return null;
  const error = runError('SESSION_RESUME_FAILED.home', { path: home });
  return { ...error, details: { cause: { message: error.message } } };
}
