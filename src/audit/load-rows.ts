// Loads the rows of a run as they were at one point in time, although a live run may change them between two queries.
// Rows change only together with a folded event, so the rows belong to the heads of the run unless such an event was
// stored meanwhile; then they are loaded again. The checks compare them with the events up to those heads.
import { everyEvent } from '../journal/every-event.js';
import { ORCHESTRATOR } from '../rasp/draft.js';
import type { RaspEvent } from '../rasp/event.js';
import { isFolded } from '../run/run-fold.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { InteractionRecord, ProfileTotals, RunRecord, Store } from '../store/store.js';

export interface RunRows {
  readonly run: RunRecord;
  readonly questions: readonly InteractionRecord[];
  readonly session: EngineSessionHandle | null;
  readonly counts: readonly ProfileTotals[];
  // The last events that belong to these rows. Infinity for damaged data: events are stored that the heads of the run
  // do not count.
  readonly lastSeqs: { readonly rasp: number; readonly fcmp: number };
}

export async function loadRows(store: Store, first: RunRecord): Promise<RunRows> {
  for (let run = first; ;) {
    const { run_id: runId, heads } = run;
    const questions = await store.listInteractions(runId);
    const session = await store.loadHandle(run.request_id);
    const counts = await store.sumTurns(runId);
    const isAhead = await hasSegmentsAfter(store, run);
    const now = await store.loadRun(runId);
    const hasGrown = now !== null && now.heads.rasp_seq !== heads.rasp_seq;
    const lastSeqs =
      isAhead && !hasGrown ? { rasp: Infinity, fcmp: Infinity } : { rasp: heads.rasp_seq, fcmp: heads.fcmp_seq };
    if (!hasGrown || !(await hasFolded(store, run, now))) return { run, questions, session, counts, lastSeqs };
    run = now;
  }
}

// Segments and heads are stored in one transaction, so the row of a live run that is loaded afterwards has grown.
async function hasSegmentsAfter(store: Store, { run_id: runId, heads }: RunRecord): Promise<boolean> {
  const rasp = await store.readSegments(runId, 'rasp', heads.rasp_seq, 1);
  const fcmp = await store.readSegments(runId, 'fcmp', heads.fcmp_seq, 1);
  return rasp.length > 0 || fcmp.length > 0;
}

async function hasFolded(store: Store, before: RunRecord, now: RunRecord): Promise<boolean> {
  const range = { fromSeq: before.heads.rasp_seq + 1, toSeq: now.heads.rasp_seq };
  for await (const event of everyEvent(store, now.run_id, range)) if (changesRows(event)) return true;
  return false;
}

// Whether rows are derived from the event: only those that Parley itself writes are folded.
export function changesRows({ event, source }: RaspEvent): boolean {
  return source.parser === ORCHESTRATOR && isFolded(event.type);
}
