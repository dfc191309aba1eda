// Refuses a new run if it is known that no live host can start its engine. Uses only facts that are already known: it
// starts no process and waits for none.
import type { Engine } from '../engines/engine.js';
import type { OrchestratorDeps } from '../journal/deps.js';

export interface EngineUse {
  readonly engine: Engine;
  readonly model: string | undefined;
  // The run needs files of this host, so only this host can run it.
  readonly isLocal: boolean;
}

export async function checkEngine(
  { runtime, peers }: Pick<OrchestratorDeps, 'runtime' | 'peers'>,
  { engine, model, isLocal }: EngineUse,
): Promise<void> {
  const obstacle = runtime.explainUnusable?.(engine, model) ?? null;
  if (obstacle === null) return;
  if (!isLocal && (await peers.hasEngine(engine.name))) return;
  throw obstacle;
}
