// Ends a run of a lost host whose logs cannot be read on this host. Stores the session that the journal names, so that
// a retry can continue it on the host that has the files.
import { buildHandle, findEngine } from '../engines/registry.js';
import { draft } from '../rasp/draft.js';
import type { RaspData } from '../rasp/event.js';
import { NO_FACTS } from '../run/guards.js';
import { describeSession, type EngineSessionHandle } from '../run/session-handle.js';
import { waitPolicyOf } from '../run/waiting/wait-policy.js';
import type { RunRecord } from '../store/store.js';
import { applyRunEvent, type ApplyDeps } from '../journal/apply-run-event.js';
import { everyEvent } from '../journal/every-event.js';
import type { Ending } from '../turn/end-from-logs.js';

export async function endWithoutLogs(deps: ApplyDeps, run: RunRecord, ending: Ending): Promise<void> {
  const { event } = ending;
  const handle = await findHandle(deps, run);
  await applyRunEvent(deps, run, {
    event,
    facts: NO_FACTS,
    ...('error' in ending ? { error: ending.error } : { actor: ending.actor }),
    before: handle ? [draft('lifecycle.session.confirmed', { session: describeSession(handle) })] : [],
  });
}

// Only the first turn of a run can lack a stored session.
async function findHandle(
  { store }: Pick<ApplyDeps, 'store'>,
  run: RunRecord,
): Promise<EngineSessionHandle | undefined> {
  if (waitPolicyOf(run.spec).needsProcess || (await store.loadHandle(run.request_id))) return undefined;
  for await (const { event, data } of everyEvent(store, run.run_id)) {
    if (event.type !== 'lifecycle.session.bound') continue;
    const { session_id: session } = data as unknown as RaspData['lifecycle.session.bound'];
    return buildHandle(findEngine(run.spec.engine), session, {
      cwd: run.spec.cwd,
      home: run.spec.home,
      attempt: run.attempt_number,
    });
  }
  return undefined;
}
