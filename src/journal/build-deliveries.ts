// The notifications of a change of state, one for each hook that subscribes to it. They contain the question, but
// nothing else of the conversation; receivers that need more load the run.
import { toTimestamp } from '../kernel/clock.js';
import type { Ids } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import { clip } from '../kernel/redact.js';
import type { FoldedQuestion, FoldedRun } from '../run/run-fold.js';
import type { Edge } from '../run/statechart.js';
import type { NewDelivery, RunRecord } from '../store/store.js';
import type { Hook } from './deps.js';

// A question may be as long as a message, and receivers refuse long bodies.
const PROMPT_CHARS = 10_000;

export interface Change {
  readonly edge: Edge;
  readonly at: number;
  // The state of the run after the change.
  readonly after: FoldedRun;
  // The URL at which people open the run.
  readonly url: string | null;
}

// A restart that finds a run still waiting sends no notification.
export function buildDeliveries(hooks: readonly Hook[], ids: Ids, run: RunRecord, change: Change): NewDelivery[] {
  const { from, to } = change.edge;
  if (from === to) return [];
  const type = `run.${to}`;
  return hooks
    .filter(({ events }) => events.includes(to))
    .map(({ name }) => ({ delivery_id: ids.delivery(), hook: name, type, payload: buildPayload(type, run, change) }));
}

// For a running turn that prints nothing. The turn continues.
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

function buildPayload(type: string, run: RunRecord, { edge, at, after, url }: Change): JsonObject {
  const { attempt_number: attempt, error, question } = after;
  return {
    type,
    run_id: run.run_id,
    request_id: run.request_id,
    status: edge.to,
    engine: run.spec.engine,
    labels: { ...run.spec.labels },
    attempt_number: attempt,
    at: toTimestamp(at),
    interaction: question?.state === 'pending' ? buildQuestion(question) : null,
    // Without the details, which may quote the conversation.
    error: error && { code: error.code, message: error.message },
    // Stored with the change, so that every delivery attempt sends the same body.
    url,
  };
}

function buildQuestion({ interaction_id: id, question }: FoldedQuestion): JsonObject {
  const { kind = null, prompt, options = [] } = question;
  return { interaction_id: id, kind, prompt: clip(typeof prompt === 'string' ? prompt : '', PROMPT_CHARS), options };
}
