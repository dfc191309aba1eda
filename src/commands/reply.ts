// Answers: from a person, or from the policy when nobody answered in time. Each question takes exactly one.
import { toTimestamp } from '../kernel/clock.js';
import { canonicalText, isObject, type Json, type JsonObject } from '../kernel/json.js';
import { draft } from '../rasp/draft.js';
import type { RaspData } from '../rasp/event.js';
import { schemaChecks } from '../schema-check/schema-checks.js';
import { nextAttempt } from '../run/attempt.js';
import { RequestError } from '../run/request-error.js';
import { parseRuntimeOptions } from '../run/runtime-options.js';
import { NOBODY_ANSWERED } from '../run/turn-prompt.js';
import type { Actor, InteractionRecord, RunRecord } from '../store/store.js';
import { actorKey } from './actor-key.js';
import { applyRunEvent } from '../journal/apply-run-event.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { loadRun } from '../journal/load-run.js';

export interface Reply {
  readonly interaction_id: string;
  readonly response?: Json;
  // Ends a conversation in which nothing was asked.
  readonly finish?: boolean;
  readonly idempotency_key?: string;
  // Of an approval: whether the client showed all of it before the decision. Recorded in the journal, never judged.
  readonly review?: NonNullable<RaspData['interaction.reply.accepted']['review']>;
}

type Policy = RaspData['interaction.auto_decide.timeout']['policy'];

const FACTS = { pending: true, handle: true, requireUserReply: false, sticky: false };
const DECISIONS: ReadonlySet<Json> = new Set(['approve', 'approve_for_session', 'decline', 'cancel']);

export async function reply(
  deps: OrchestratorDeps,
  runId: string,
  given: Reply,
  actor: Actor | null,
): Promise<RunRecord> {
  const run = await loadRun(deps.store, runId);
  if (run.spec.execution_mode === 'auto')
    throw new RequestError('RUN_NOT_INTERACTIVE', `run ${runId} is in auto mode: it asks nothing`);
  const interaction = await deps.store.loadInteraction(given.interaction_id);
  if (interaction?.run_id !== runId)
    throw new RequestError('INTERACTION_NOT_FOUND', `run ${runId} has no interaction ${given.interaction_id}`);
  const response = given.response ?? null;
  // It may have been decided between the two looks.
  if (interaction.state !== 'pending') return alreadyResolved(await loadRun(deps.store, runId), interaction, given);
  await checkReply(interaction, given, actor);
  const now = Math.max(deps.clock.now(), run.heads.ts);
  const outcome = await applyRunEvent(deps, run, {
    event: 'interaction.reply.accepted',
    facts: FACTS,
    set: { attempt_number: nextAttempt(run.spec.execution_mode, run.attempt_number) },
    resolve: {
      interaction_id: interaction.interaction_id,
      state: 'answered',
      resolution: {
        at: now,
        response,
        actor,
        idempotency_key: given.idempotency_key ?? null,
        finish: given.finish ?? false,
      },
    },
    before: [
      draft(
        'interaction.reply.accepted',
        {
          interaction_id: interaction.interaction_id,
          resolution_mode: 'user_reply',
          accepted_at: toTimestamp(now),
          response,
          finish: given.finish,
          actor: actor ?? undefined,
          review: interaction.question.kind === 'approval' ? given.review : undefined,
          idempotency_key: given.idempotency_key,
        },
        { interactionId: interaction.interaction_id },
      ),
    ],
  });
  if (outcome.applied) return { ...outcome.run, waited_ms: run.waited_ms + Math.max(0, now - interaction.asked_at) };
  if ('refusal' in outcome)
    throw new RequestError('RUN_NOT_WAITING', `run ${runId} is ${run.status}: it does not wait for an answer`);
  // Somebody was quicker: look again at what there is now.
  return reply(deps, runId, given, actor);
}

// The same answer again is the same answer; any other comes too late.
function alreadyResolved(
  run: RunRecord,
  { interaction_id: id, state, resolution }: InteractionRecord,
  given: Reply,
): RunRecord {
  const sameKey = given.idempotency_key !== undefined && resolution?.idempotency_key === given.idempotency_key;
  if (state === 'answered' && sameKey) {
    if (
      canonicalText(resolution?.response) === canonicalText(given.response ?? null) &&
      resolution?.finish === (given.finish ?? false)
    )
      return run;
    throw new RequestError('REPLY_CONFLICT', `interaction ${id} was answered with the same key and another reply`);
  }
  if (run.status === 'waiting_user')
    throw new RequestError('INTERACTION_STALE', `interaction ${id} is ${state}; the run waits for another answer`);
  if (state === 'auto_decided')
    throw new RequestError(
      'RUN_NOT_WAITING',
      `the time of interaction ${id} was over, and it was decided without you; the run is ${run.status}`,
    );
  throw new RequestError('RUN_NOT_WAITING', `interaction ${id} is ${state}, and the run is ${run.status}`);
}

async function checkReply(
  { question }: InteractionRecord,
  { response, finish }: Reply,
  actor: Actor | null,
): Promise<void> {
  if (finish && question.channel !== 'conversation')
    throw new RequestError(
      'INVALID_ARGUMENT',
      'the agent asked something: answer it, or cancel the run; finish ends only a conversation in which nothing ' +
        'was asked',
    );
  if (!finish && response === undefined) throw new RequestError('INVALID_ARGUMENT', 'a reply needs a response');
  if (isObject(question.response_schema) && !finish) await checkForm(question.response_schema, response, actor);
  if (question.kind !== 'approval' || finish) return;
  if (!isObject(response) || !DECISIONS.has(response.decision ?? null))
    throw new RequestError(
      'APPROVAL_INVALID',
      'an approval needs {"decision": "approve" | "approve_for_session" | "decline" | "cancel"}',
    );
}

// The engine would refuse it, and nobody could answer again.
async function checkForm(form: JsonObject, response: Json | undefined, actor: Actor | null): Promise<void> {
  const problem = await schemaChecks.explainValue({
    schema: form,
    value: response ?? null,
    name: 'answer',
    ...(actor ? { caller: actorKey(actor) } : {}),
  });
  if (problem !== null)
    throw new RequestError('INVALID_ARGUMENT', `the answer does not have the form that was asked for: ${problem}`);
}

// Nobody answered in time. Answers the run, or null if the question is not there any more.
export async function decide(deps: OrchestratorDeps, interaction: InteractionRecord): Promise<RunRecord | null> {
  const run = await deps.store.loadRun(interaction.run_id);
  if (!run) return null;
  const options = parseRuntimeOptions(run.spec.runtime_options);
  const { policy, response, finish } = decisionFor(interaction.question, options.auto_decide_policy);
  const now = Math.max(deps.clock.now(), run.heads.ts);
  const outcome = await applyRunEvent(deps, run, {
    event: 'interaction.auto_decide.timeout',
    facts: { ...FACTS, requireUserReply: options.interactive_require_user_reply },
    set: { attempt_number: nextAttempt(run.spec.execution_mode, run.attempt_number) },
    resolve: {
      interaction_id: interaction.interaction_id,
      state: 'auto_decided',
      resolution: { at: now, response, actor: null, idempotency_key: null, finish },
    },
    before: [
      draft(
        'interaction.auto_decide.timeout',
        {
          interaction_id: interaction.interaction_id,
          resolution_mode: 'auto_decide_timeout',
          policy,
          decided_at: toTimestamp(now),
          response,
        },
        { interactionId: interaction.interaction_id },
      ),
    ],
  });
  return outcome.applied ? outcome.run : null;
}

function decisionFor(
  question: JsonObject,
  configured: 'engine_judgement' | 'use_default',
): { policy: Policy; response: Json; finish: boolean } {
  // Nothing is ever allowed by silence.
  if (question.kind === 'approval' || isObject(question.response_schema))
    return { policy: 'decline', response: { decision: 'decline' }, finish: false };
  if (question.channel === 'conversation') return { policy: 'finish', response: null, finish: true };
  if (configured === 'use_default' && question.default !== undefined)
    return { policy: 'use_default', response: question.default, finish: false };
  return { policy: 'engine_judgement', response: NOBODY_ANSWERED, finish: false };
}
