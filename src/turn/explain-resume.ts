// Whether the first turn of an interactive run has to warn that its engine may be unable to continue the conversation
// later.
import type { Engine } from '../engines/engine.js';
import { ENGINES } from '../engines/registry.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import type { RunRecord } from '../store/store.js';
import type { OrchestratorDeps, ResumeKnowledge } from '../journal/deps.js';

// A probe takes a second or two, once per program. A turn waits no longer for it than this.
const PATIENCE_MS = 3000;

// A run that waits in its process (sticky) needs no resume.
export async function explainResume(deps: OrchestratorDeps, engine: Engine, { spec }: RunRecord): Promise<RaspDraft[]> {
  if (spec.execution_mode !== 'interactive' || spec.sticky === true) return [];
  const found = deps.host.knownResume?.(engine) ?? (await probeWithin(deps, engine));
  if (found === null || found.resumes) return [];
  const message =
    `${engine.name} has not shown that it can continue a conversation in another process: ` +
    `${found.problem ?? 'the probe had no result'}`;
  return [draft('diagnostic.parser.warning', { code: 'RESUME_NOT_PROVED', message })];
}

// Before the first run of a server is created: its profile then states what is true.
export async function probeEngines({ host }: OrchestratorDeps): Promise<void> {
  await Promise.all(ENGINES.map(async (engine) => host.probeResume?.(engine)));
}

async function probeWithin({ host, timers }: OrchestratorDeps, engine: Engine): Promise<ResumeKnowledge | null> {
  const probe = host.probeResume?.(engine) ?? null;
  if (probe === null) return null;
  return new Promise((resolve, reject) => {
    const cancel = timers.set(PATIENCE_MS, () =>
      resolve({ resumes: false, problem: `its probe has not ended within ${PATIENCE_MS / 1000} s` }),
    );
    probe.then(resolve, reject).finally(cancel);
  });
}
