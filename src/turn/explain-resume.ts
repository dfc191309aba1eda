// Whether the first turn of an interactive run must warn that its engine may be unable to continue the conversation
// later.
import type { Engine } from '../engines/engine.js';
import { ENGINES } from '../engines/registry.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import { waitPolicyOf } from '../run/waiting/wait-policy.js';
import type { RunRecord } from '../store/store.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import type { ResumeKnowledge } from '../machine/engine-runtime.js';

// A probe takes a second or two, once per program. A turn waits no longer for it than this.
const PATIENCE_MS = 3000;

// A run that waits in its process needs no resume.
type ProbeDeps = Pick<OrchestratorDeps, 'runtime' | 'timers'>;

export async function explainResume(deps: ProbeDeps, engine: Engine, { spec }: RunRecord): Promise<RaspDraft[]> {
  if (spec.execution_mode !== 'interactive' || waitPolicyOf(spec).needsProcess) return [];
  const knowledge = deps.runtime.knownResume?.(engine) ?? (await probeWithin(deps, engine));
  if (knowledge === null || knowledge.resumes) return [];
  const message =
    `${engine.name} has not shown that it can continue a conversation in another process: ` +
    `${knowledge.problem ?? 'the probe had no result'}`;
  return [draft('diagnostic.parser.warning', { code: 'RESUME_NOT_PROVED', message })];
}

// Call it before a server creates its first run, so that the recorded profile of the run is correct.
export async function probeEngines({ runtime }: Pick<ProbeDeps, 'runtime'>): Promise<void> {
  await Promise.all(ENGINES.map(async (engine) => runtime.probeResume?.(engine)));
}

async function probeWithin({ runtime, timers }: ProbeDeps, engine: Engine): Promise<ResumeKnowledge | null> {
  const probe = runtime.probeResume?.(engine) ?? null;
  if (probe === null) return null;
  return new Promise((resolve, reject) => {
    const cancel = timers.set(PATIENCE_MS, () =>
      resolve({ resumes: false, problem: `its probe has not ended within ${PATIENCE_MS / 1000} s` }),
    );
    probe.then(resolve, reject).finally(cancel);
  });
}
