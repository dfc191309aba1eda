// Whether a session exists. False also if the search fails.
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { OrchestratorDeps } from '../journal/deps.js';

export async function isSessionThere(
  { runtime }: Pick<OrchestratorDeps, 'runtime'>,
  handle: EngineSessionHandle,
): Promise<boolean> {
  try {
    return await runtime.hasSession(handle);
  } catch {
    return false;
  }
}
