// The end of a turn as data: the judgement, and the change of the run with its events. Pure; applyRunEvent stores the
// change in one transaction.
import { toTimestamp } from '../kernel/clock.js';
import type { InteractionId } from '../kernel/ids.js';
import { asObject, asString } from '../kernel/json.js';
import { clip, redact } from '../kernel/redact.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import type { RaspData } from '../rasp/event.js';
import { NO_FACTS } from '../run/guards.js';
import { judgeCompletion, type TurnFacts, type Verdict } from '../run/judge-completion.js';
import type { RunError } from '../run/run-error.js';
import type { Question } from '../run/interaction.js';
import type { RunTransition } from '../journal/apply-run-event.js';

const MAX_ERROR_CHARS = 2000;

export interface TurnEnd {
  readonly facts: TurnFacts;
  readonly now: number;
  // The id of the interaction, if the run has to wait.
  readonly interactionId: InteractionId;
  // The caller who canceled the run, if it was canceled.
  readonly canceledBy?: RaspData['lifecycle.state.changed']['actor'];
  readonly streams: RaspData['lifecycle.turn.ended']['streams'];
  readonly parser: RaspData['lifecycle.turn.ended']['parser'];
  // The digest of the journal before these events, if there is one.
  readonly digest?: string;
  // Events of the turn's end that come before the judgement.
  readonly remarks?: readonly RaspDraft[];
}

export interface TurnConclusion {
  readonly verdict: Verdict;
  readonly question: Question | null;
  readonly error: RunError | null;
  readonly transition: RunTransition & { readonly before: readonly RaspDraft[] };
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
  return { verdict, question, error, transition: { ...change, before: drafts } };
}

// An engine's message may be long and may contain a key.
function toPublicError({ details, values, ...error }: RunError): RunError {
  const cause = asObject(details?.cause);
  const message = asString(cause?.message);
  return {
    ...error,
    message: clear(error.message),
    ...(values === undefined ? {} : { values: clearValues(values) }),
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

// Also clears the values within phrases.
function clearValues<T>(value: T): T {
  if (typeof value === 'string') return clear(value) as T;
  if (Array.isArray(value)) return value.map((item: unknown) => clearValues(item)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, clearValues(item as unknown)])) as T;
}

function clear(text: string): string {
  return redact(clip(text, MAX_ERROR_CHARS));
}
