// Whether a session can be found. One that cannot be looked for counts as not there.
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { OrchestratorDeps } from '../journal/deps.js';

export async function isSessionThere({ host }: OrchestratorDeps, handle: EngineSessionHandle): Promise<boolean> {
  try {
    return await host.hasSession(handle);
  } catch {
    return false;
  }
}
