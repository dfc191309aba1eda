// Answers a question: a person replies, or the policy decides when its time has expired. Each question accepts exactly
// one answer.
import { phrase } from '../messages/phrase.js';
import { toTimestamp } from '../kernel/clock.js';
import { canonicalText, isObject, type Json, type JsonObject } from '../kernel/json.js';
import { NO_FACTS } from '../run/guards.js';
import { draft } from '../rasp/draft.js';
import type { RaspData } from '../rasp/event.js';
import { schemaChecks } from '../schema-check/schema-checks.js';
import { refusal } from '../run/request-error.js';
import { parseRuntimeOptions } from '../run/runtime-options.js';
import { NOBODY_ANSWERED } from '../run/turn-prompt.js';
import type { Actor, InteractionRecord, RunRecord } from '../store/store.js';
import { actorKey } from './actor-key.js';
import { applyRunEvent, type Applied, type ApplyDeps } from '../journal/apply-run-event.js';
import { loadRun } from '../journal/load-run.js';

/** A reply as callers send it; only the server checks its form. */
export interface Reply {
  /** The question that is answered. */
  readonly interaction_id: string;
  /** The response to the question. */
  readonly response?: Json;
  /** Ends the conversation. Only allowed if the agent asked nothing. */
  readonly finish?: boolean;
  /** Idempotency key: the same reply with the same key is applied once. */
  readonly idempotency_key?: string;
  /** For an approval: whether the client showed the whole action before the decision. Recorded in the journal only. */
  readonly review?: NonNullable<RaspData['interaction.reply.accepted']['review']>;
}

type Policy = RaspData['interaction.auto_decide.timeout']['policy'];

const DECISIONS: ReadonlySet<Json> = new Set(['approve', 'approve_for_session', 'decline', 'cancel']);

export interface ReplyInput {
  readonly reply: Reply;
  readonly actor: Actor | null;
}

export async function replyToRun(deps: ApplyDeps, runId: string, input: ReplyInput): Promise<RunRecord> {
  const { reply, actor } = input;
  const run = await loadRun(deps.store, runId);
  if (run.spec.execution_mode === 'auto') throw refusal('RUN_NOT_INTERACTIVE', { run: runId });
  const interaction = await deps.store.loadInteraction(reply.interaction_id);
  if (interaction?.run_id !== runId)
    throw refusal('INTERACTION_NOT_FOUND.unknown', { run: runId, interaction: reply.interaction_id });
  const response = reply.response ?? null;
  // Loads the run again: the question may have been resolved after the run was loaded.
  if (interaction.state !== 'pending') return alreadyResolved(await loadRun(deps.store, runId), interaction, reply);
  await checkReply(interaction, reply, actor);
  const now = Math.max(deps.clock.now(), run.heads.ts);
  const outcome = await applyRunEvent(deps, run, {
    event: 'interaction.reply.accepted',
    facts: NO_FACTS,
    pending: interaction,
    before: [
      draft(
        'interaction.reply.accepted',
        {
          interaction_id: interaction.interaction_id,
          resolution_mode: 'user_reply',
          accepted_at: toTimestamp(now),
          response,
          finish: reply.finish,
          actor: actor ?? undefined,
          review: interaction.question.kind === 'approval' ? reply.review : undefined,
          idempotency_key: reply.idempotency_key,
        },
        { interactionId: interaction.interaction_id },
      ),
    ],
  });
  if (outcome.applied) return outcome.run;
  if ('refusal' in outcome) throw refusal('RUN_NOT_WAITING.state', { run: runId, status: run.status });
  // Another writer committed first: decide again from the new state.
  return replyToRun(deps, runId, input);
}

// Repeating a reply with its idempotency key returns the run; every other reply is too late.
function alreadyResolved(
  run: RunRecord,
  { interaction_id: id, state, resolution }: InteractionRecord,
  reply: Reply,
): RunRecord {
  const sameKey = reply.idempotency_key !== undefined && resolution?.idempotency_key === reply.idempotency_key;
  if (state === 'answered' && sameKey) {
    if (
      canonicalText(resolution?.response) === canonicalText(reply.response ?? null) &&
      resolution?.finish === (reply.finish ?? false)
    )
      return run;
    throw refusal('REPLY_CONFLICT', { interaction: id });
  }
  if (run.status === 'waiting_user') throw refusal('INTERACTION_STALE', { interaction: id, state });
  if (state === 'auto_decided') throw refusal('RUN_NOT_WAITING.timed_out', { interaction: id, status: run.status });
  throw refusal('RUN_NOT_WAITING.resolved', { interaction: id, state, status: run.status });
}

async function checkReply(
  { question }: InteractionRecord,
  { response, finish }: Reply,
  actor: Actor | null,
): Promise<void> {
  if (finish && question.channel !== 'conversation') throw refusal('INVALID_ARGUMENT.finish_question');
  if (!finish && response === undefined) throw refusal('INVALID_ARGUMENT.no_response');
  if (isObject(question.response_schema) && !finish) await checkForm(question.response_schema, response, actor);
  if (question.kind !== 'approval' || finish) return;
  if (!isObject(response) || !DECISIONS.has(response.decision ?? null))
    throw refusal('APPROVAL_INVALID', { example: '{"decision": "approve"}' });
}

// Checked before the reply is accepted: the engine would refuse it, and the question could not be answered again.
async function checkForm(form: JsonObject, response: Json | undefined, actor: Actor | null): Promise<void> {
  const problem = await schemaChecks.explainValue({
    schema: form,
    value: response ?? null,
    name: phrase('answer'),
    ...(actor ? { caller: actorKey(actor) } : {}),
  });
  if (problem !== null) throw refusal('INVALID_ARGUMENT.answer_form', { problem });
}

// Decides an expired question by the policy of its run. Resolves to null if the question is no longer open or the
// policy must not decide it.
export async function decide(deps: ApplyDeps, interaction: InteractionRecord): Promise<RunRecord | null> {
  for (;;) {
    const run = await deps.store.loadRun(interaction.run_id);
    const outcome = run && (await decideOnce(deps, run, interaction));
    if (!outcome) return null;
    if (outcome.applied) return outcome.run;
    // Another writer was first, for instance the check of a start: read the run again.
    if (!('conflict' in outcome) || outcome.conflict !== 'seq') return null;
  }
}

function decideOnce(deps: ApplyDeps, run: RunRecord, interaction: InteractionRecord): Promise<Applied> {
  const options = parseRuntimeOptions(run.spec.runtime_options);
  const { policy, response } = decisionFor(interaction.question, options.auto_decide_policy);
  const now = Math.max(deps.clock.now(), run.heads.ts);
  return applyRunEvent(deps, run, {
    event: 'interaction.auto_decide.timeout',
    facts: { ...NO_FACTS, requireUserReply: options.interactive_require_user_reply },
    pending: interaction,
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
}

function decisionFor(
  question: JsonObject,
  configured: 'engine_judgement' | 'use_default',
): { policy: Policy; response: Json } {
  // A timeout never allows anything.
  if (question.kind === 'approval' || isObject(question.response_schema))
    return { policy: 'decline', response: { decision: 'decline' } };
  if (question.channel === 'conversation') return { policy: 'finish', response: null };
  if (configured === 'use_default' && question.default !== undefined)
    return { policy: 'use_default', response: question.default };
  return { policy: 'engine_judgement', response: NOBODY_ANSWERED };
}
