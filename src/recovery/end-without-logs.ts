// Ends a run of a host that is gone, where its logs cannot be read: what the journal knows of its session is kept, so
// that it can be tried again from it, where its files are.
import { buildHandle, findEngine } from '../engines/registry.js';
import { readStoredJson } from '../kernel/stored-json.js';
import type { RaspData, RaspEvent } from '../rasp/event.js';
import { NO_FACTS } from '../run/guards.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { RunRecord } from '../store/store.js';
import { applyRunEvent } from '../journal/apply-run-event.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import type { Ending } from '../turn/end-from-logs.js';

const PAGE = 200;

export async function endWithoutLogs(deps: OrchestratorDeps, run: RunRecord, ending: Ending): Promise<void> {
  const { event } = ending;
  const handle = await findHandle(deps, run);
  await applyRunEvent(deps, run, {
    event,
    facts: NO_FACTS,
    ...('error' in ending ? { error: ending.error } : { actor: ending.actor }),
    handle,
  });
}

// Of a first turn: that of a later one is stored.
async function findHandle({ store }: OrchestratorDeps, run: RunRecord): Promise<EngineSessionHandle | undefined> {
  if (run.spec.sticky || (await store.loadHandle(run.request_id))) return undefined;
  for (let seq = 1; seq <= run.heads.rasp_seq; seq += PAGE) {
    for (const line of await store.readJournal(run.run_id, 'rasp', { fromSeq: seq, limit: PAGE })) {
      const { event, data } = readStoredJson(line) as RaspEvent;
      if (event.type !== 'lifecycle.session.bound') continue;
      const { session_id: session } = data as unknown as RaspData['lifecycle.session.bound'];
      return buildHandle(findEngine(run.spec.engine), session, {
        cwd: run.spec.cwd,
        home: run.spec.home,
        attempt: run.attempt_number,
      });
    }
  }
  return undefined;
}
