// Whether a run of an engine may be created: refused where no host that is alive could start it. Only what is known
// counts: nothing is started, and nothing is waited for.
import type { Engine } from '../engines/engine.js';
import { RequestError } from '../run/request-error.js';
import type { OrchestratorDeps } from '../journal/deps.js';

const OVERRIDE = 'To create the run all the same: --force (over HTTP "force": true).';

export interface EngineUse {
  readonly engine: Engine;
  readonly model: string | undefined;
  // The run needs files of this host, so no other host can play it.
  readonly isLocal: boolean;
}

export async function checkEngine(
  { host, cluster }: OrchestratorDeps,
  { engine, model, isLocal }: EngineUse,
): Promise<void> {
  const obstacle = host.explainUnusable?.(engine, model) ?? null;
  if (obstacle === null) return;
  if (cluster && !isLocal && (await cluster.hasEngine(engine.name))) return;
  throw new RequestError(obstacle.code, `${obstacle.message} ${OVERRIDE}`);
}
