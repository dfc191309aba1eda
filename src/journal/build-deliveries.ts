// The notifications of a change of state, one for each hook that wants to know of it. Of what was said in the run only
// the question is in them; whoever wants more asks for the run.
import { toTimestamp } from '../kernel/clock.js';
import type { Ids } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import { clip } from '../kernel/redact.js';
import type { RunError } from '../run/judge-completion.js';
import type { Edge } from '../run/statechart.js';
import type { NewDelivery, RunChange, RunRecord } from '../store/store.js';
import type { Hook } from './deps.js';

// A question may be as long as a message; receivers refuse what is long.
const PROMPT_CHARS = 10_000;

export interface Change {
  readonly edge: Edge;
  readonly at: number;
  readonly attempt: number;
  readonly error: RunError | null;
  readonly ask: RunChange['ask'];
  // Where people open the run.
  readonly url: string | null;
}

// A run that is found as it was (a restart finds it waiting) is no news.
export function buildDeliveries(hooks: readonly Hook[], ids: Ids, run: RunRecord, change: Change): NewDelivery[] {
  const { from, to } = change.edge;
  if (from === to) return [];
  const type = `run.${to}`;
  return hooks
    .filter(({ events }) => events.includes(to))
    .map(({ name }) => ({ delivery_id: ids.delivery(), hook: name, type, payload: buildPayload(type, run, change) }));
}

// A running turn that prints nothing; it is still running.
export function buildSilenceDeliveries(
  hooks: readonly Hook[],
  ids: Ids,
  run: RunRecord,
  { at, since, url }: { readonly at: number; readonly since: number; readonly url: string | null },
): NewDelivery[] {
  const type = 'run.silent';
  const payload = {
    ...describeRun(type, run),
    status: run.status,
    attempt_number: run.attempt_number,
    at: toTimestamp(at),
    silent_since: toTimestamp(since),
    interaction: null,
    error: null,
    url,
  };
  return hooks
    .filter(({ events }) => events.includes('silent'))
    .map(({ name }) => ({ delivery_id: ids.delivery(), hook: name, type, payload }));
}

function describeRun(type: string, run: RunRecord): JsonObject {
  return {
    type,
    run_id: run.run_id,
    request_id: run.request_id,
    engine: run.spec.engine,
    labels: { ...run.spec.labels },
  };
}

function buildPayload(type: string, run: RunRecord, { edge, at, attempt, error, ask, url }: Change): JsonObject {
  return {
    type,
    run_id: run.run_id,
    request_id: run.request_id,
    status: edge.to,
    engine: run.spec.engine,
    labels: { ...run.spec.labels },
    attempt_number: attempt,
    at: toTimestamp(at),
    interaction: ask ? buildQuestion(ask) : null,
    // Without its details, which may quote what was said.
    error: error && { code: error.code, message: error.message },
    // Stored with the change, so that every try sends the same.
    url,
  };
}

function buildQuestion({ interaction_id: id, question }: NonNullable<RunChange['ask']>): JsonObject {
  const { kind = null, prompt, options = [] } = question;
  return { interaction_id: id, kind, prompt: clip(typeof prompt === 'string' ? prompt : '', PROMPT_CHARS), options };
}
