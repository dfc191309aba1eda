// Deletes the rows of an ended run, within the transaction of the caller, and leaves a tombstone in the administrative
// journal. Every statement finds its rows by an index, so the cost depends on this run alone.
import { isTerminal } from '../../run/statechart.js';
import { tombstoneOf, UNTRACED } from '../audit.js';
import type { RunRow } from '../rows.js';
import type { DeleteOutcome, DeleteRunOptions } from '../store.js';
import { appendAudit } from './access.js';
import { forgetGivenUp } from './deliveries.js';
import { findAtWork, findInHome } from './find-runs.js';
import type { Database } from './open-database.js';

type Deletable = Pick<RunRow, 'request_id' | 'status' | 'rasp_seq' | 'digest'> & {
  readonly cwd: string | null;
  readonly home: string | null;
  readonly continues: number;
};

// Reads columns only: a run whose JSON is damaged can be deleted.
export function deleteRun(
  db: Database,
  runId: string,
  { damaged = false, trace = UNTRACED }: DeleteRunOptions,
): DeleteOutcome {
  const run = db
    .prepare('SELECT request_id, status, cwd, home, continues, rasp_seq, digest FROM runs WHERE run_id = ?')
    .get(runId) as Deletable | undefined;
  if (!run) return 'unknown_run';
  if (!damaged && !isTerminal(run.status)) return 'not_ended';
  // Runs that continue it use its home and its session.
  if (run.continues !== 1 && findInHome(db, run.home, runId)) return 'session_in_use';
  // A fork has its own home, but works in this folder.
  if (run.cwd?.includes(runId) && findAtWork(db, run.cwd, runId)) return 'session_in_use';
  db.prepare('DELETE FROM request_interactive_runtime WHERE request_id = ?').run(run.request_id);
  db.prepare('DELETE FROM runs WHERE run_id = ?').run(runId);
  forgetGivenUp(db, runId);
  appendAudit(db, {
    ...trace,
    type: 'run.deleted',
    body: tombstoneOf({ run_id: runId, rasp_seq: run.rasp_seq, digest: run.digest }),
  });
  return 'deleted';
}
