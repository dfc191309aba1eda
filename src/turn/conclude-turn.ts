// What the end of a turn means for its run, as data: the judgement, the events to store, and where the chart leads.
// Pure; the caller stores it all in one transaction.
import { toTimestamp } from '../kernel/clock.js';
import type { InteractionId } from '../kernel/ids.js';
import { invariant } from '../kernel/invariant.js';
import { asObject, asString } from '../kernel/json.js';
import { clip, redact } from '../kernel/redact.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import type { RaspData } from '../rasp/event.js';
import { NO_FACTS } from '../run/guards.js';
import { judgeCompletion, type RunError, type TurnFacts, type Verdict } from '../run/judge-completion.js';
import type { Question } from '../run/interaction.js';
import type { Edge } from '../run/statechart.js';
import type { RunTransition } from '../journal/apply-run-event.js';
import { takeEdge } from '../journal/take-edge.js';

const MAX_ERROR_CHARS = 2000;

export interface TurnEnd {
  readonly facts: TurnFacts;
  readonly now: number;
  // The id for an interaction, should the run have to wait.
  readonly interactionId: InteractionId;
  // Who canceled the run, if somebody did.
  readonly canceledBy?: RaspData['lifecycle.state.changed']['actor'];
  readonly streams: RaspData['lifecycle.turn.ended']['streams'];
  readonly parser: RaspData['lifecycle.turn.ended']['parser'];
  // Of the journal before these events, where there is one.
  readonly digest?: string;
  // Events of the turn's end that come before the judgement.
  readonly remarks?: readonly RaspDraft[];
}

export interface TurnConclusion {
  readonly verdict: Verdict;
  readonly edge: Edge;
  readonly question: Question | null;
  readonly error: RunError | null;
  // The closing events, the change of state last.
  readonly drafts: readonly RaspDraft[];
  // The same as what the door takes, with the events that come before the change of state.
  readonly transition: RunTransition;
}

export function concludeTurn(end: TurnEnd): TurnConclusion {
  const { facts } = end;
  const verdict = judgeCompletion(facts);
  const { sessionId } = facts.evidence;
  const question = verdict.event === 'turn.needs_input' ? verdict.question : null;
  const error = verdict.event === 'turn.failed' ? toPublicError(verdict.error) : null;
  const change: Omit<RunTransition, 'before'> = {
    event: verdict.event,
    facts: { ...NO_FACTS, pending: question !== null, handle: sessionId !== null && facts.handleChecked },
    sessionId,
    error: error ?? undefined,
    result: verdict.event === 'turn.succeeded' ? verdict.result : undefined,
    actor: verdict.event === 'run.canceled' ? end.canceledBy : undefined,
  };
  const taken = takeEdge('running', change.event, change.facts, { ...change, now: end.now });
  invariant(taken.legal, `a turn cannot end with ${verdict.event}`);

  const now = toTimestamp(end.now);
  const drafts: RaspDraft[] = [...(end.remarks ?? [])];
  if (verdict.completion === 'unknown') {
    drafts.push(
      draft(
        'diagnostic.completion.unknown',
        { reason_code: verdict.reasonCode, message: error?.message ?? '' },
        { sessionId },
      ),
    );
  }
  if (verdict.event === 'turn.succeeded' && sessionId === null) {
    drafts.push(
      draft('diagnostic.parser.warning', {
        code: 'SESSION_ID_MISSING',
        message: 'the turn is done, but its output names no session that could be continued',
      }),
    );
  }
  drafts.push(
    draft(
      'lifecycle.turn.ended',
      {
        exit: facts.exit,
        completion: { result: verdict.completion, reason_code: verdict.reasonCode },
        streams: end.streams,
        parser: end.parser,
        digest: end.digest,
      },
      { sessionId },
    ),
  );
  if (question) {
    drafts.push(
      draft(
        'interaction.requested',
        {
          interaction_id: end.interactionId,
          kind: question.kind,
          prompt: question.prompt,
          options: [...question.options],
          fields: question.fields && [...question.fields],
          default: question.default,
          action: question.action,
          digest: question.digest,
          response_schema: question.response_schema,
          channel: question.channel,
          asked_at: now,
        },
        { sessionId, interactionId: end.interactionId },
      ),
    );
  }
  const before = [...drafts];
  drafts.push(taken.changed);
  return { verdict, edge: taken.edge, question, error, drafts, transition: { ...change, before } };
}

// What an engine said may be long, and may hold a key.
function toPublicError({ details, ...error }: RunError): RunError {
  const cause = asObject(details?.cause);
  const message = asString(cause?.message);
  return {
    ...error,
    message: clear(error.message),
    ...(details === undefined
      ? {}
      : {
          details: {
            ...details,
            ...(cause && message !== undefined ? { cause: { ...cause, message: clear(message) } } : {}),
          },
        }),
  };
}

function clear(text: string): string {
  return redact(clip(text, MAX_ERROR_CHARS));
}
