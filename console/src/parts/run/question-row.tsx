// A question where it was asked: with the ways to answer while it waits, then with its answer, by whom and when.
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import type { InboxItem, InteractionView } from '../../../../src/client/index.js';
import { asObject, type Json, type JsonObject } from '../../../../src/kernel/json.js';
import { formatTime } from '../../state/format.js';
import { fates, inbox } from '../../state/inbox.js';
import type { QuestionRow as Row } from '../../state/run-rows.js';
import { readFileChanges } from '../../../../src/kernel/file-changes.js';
import { nameInvisible } from '../../../../src/kernel/visible-text.js';
import { Diff } from '../diff.js';
import { Markdown } from '../markdown.js';
import { QuestionCard, type Asked } from '../question-card.js';
import { Fold, Pretty } from './fold.js';

interface QuestionProps {
  readonly runId: string;
  // What the run says that it waits for: with all of what an approval is about, which no event tells.
  readonly waitsFor: InteractionView | null;
  readonly row: Row;
  readonly rev: number;
  // Nothing is known that came after it.
  readonly isCurrent: boolean;
  readonly isActive: boolean;
  readonly onActivate: () => void;
}

export function QuestionRow({ runId, waitsFor, row, isCurrent, isActive, onActivate }: QuestionProps): JSX.Element {
  const question = row.question as unknown as Asked;
  const isConversation = question.channel === 'conversation';
  const fate = fates.value.get(row.interactionId);
  // An answer was sent from here, whatever became of it.
  const tried = useRef(false);
  if (fate?.type === 'sending') tried.current = true;
  // The inbox shortens long questions; the run has them whole.
  const listed = inbox.value.find(
    ({ interaction_id: id, truncated }) => id === row.interactionId && !truncated.includes('question'),
  );
  const waiting = listed ?? (waitsFor?.interaction_id === row.interactionId ? waitsFor : undefined);
  // Nobody decides about what they have not seen.
  if (row.resolution.type === 'pending' && isCurrent && (waiting !== undefined || question.kind !== 'approval')) {
    const asked = waiting?.question ?? row.question;
    // What it said last stands above already.
    const shown = isConversation ? { ...asked, prompt: 'It waits for what you say next.' } : asked;
    const item: Pick<InboxItem, 'run_id' | 'interaction_id' | 'question' | 'asked_at' | 'overdue' | 'state'> = {
      run_id: runId,
      interaction_id: row.interactionId,
      question: shown,
      asked_at: row.at,
      overdue: waiting?.overdue ?? false,
      state: 'pending',
    };
    return <QuestionCard item={item} isActive={isActive} onActivate={onActivate} showsRun={false} />;
  }
  return (
    <div class={`asked ${isConversation ? 'turn' : ''}`}>
      {!isConversation && (
        <div class="question">
          <span class="dim small">{question.kind === 'approval' ? 'Asked for permission' : 'Asked'}</span>
          {question.kind === 'approval' ? (
            <pre class="plain" tabIndex={0} role="region" aria-label="What it asked permission for">
              {nameInvisible(question.prompt)}
            </pre>
          ) : (
            <Markdown text={question.prompt} cachedBy={row} />
          )}
          {question.action && (
            <Fold id={`${row.key}/action`} summary="What it was about">
              {() => <About action={question.action ?? {}} />}
            </Fold>
          )}
        </div>
      )}
      <Resolution
        resolution={row.resolution}
        question={question}
        isLate={tried.current && (fate?.type === 'gone' || fate?.type === 'answered')}
      />
    </div>
  );
}

function Resolution({
  resolution,
  question,
  isLate,
}: {
  readonly resolution: Row['resolution'];
  readonly question: Asked;
  readonly isLate: boolean;
}): JSX.Element | null {
  switch (resolution.type) {
    case 'pending':
      return null;
    case 'gone':
      return <p class="answer dim">It was not answered: the run has ended.</p>;
    case 'decided':
      return (
        <div class="answer">
          <p class="dim small">
            Nobody answered in time; decided by the policy <code>{resolution.policy}</code> <When at={resolution.at} />
          </p>
          {resolution.response !== undefined && <Said response={resolution.response} question={question} />}
        </div>
      );
    case 'answered':
      return (
        <div class="answer">
          <p class="dim small">
            {resolution.finish ? 'Finished' : deedOf(resolution.response)} by <strong>{resolution.by}</strong>{' '}
            <When at={resolution.at} />
            {resolution.review === 'unread' && ', without having seen all of it'}
          </p>
          {resolution.response !== undefined && !resolution.finish && (
            <Said response={resolution.response} question={question} />
          )}
          {isLate && (
            <p class="bad" role="status">
              Your answer came too late.
            </p>
          )}
        </div>
      );
  }
}

const DEEDS: Readonly<Record<string, string>> = {
  approve: 'Approved',
  approve_for_session: 'Approved for the session',
  decline: 'Declined',
  cancel: 'Declined and stopped',
};

function deedOf(response: Json | undefined): string {
  const decision = asObject(response)?.['decision'];
  return (typeof decision === 'string' ? DEEDS[decision] : undefined) ?? 'Answered';
}

function When({ at }: { readonly at: string }): JSX.Element {
  return <time dateTime={at}>{formatTime(at)}</time>;
}

// In the words of the option that was chosen.
function Said({ response, question }: { readonly response: Json; readonly question: Asked }): JSX.Element {
  const decision = asObject(response)?.['decision'];
  const label = question.options.find(
    ({ value }) =>
      JSON.stringify(value) === JSON.stringify(response) ||
      (decision !== undefined && asObject(value)?.['decision'] === decision),
  )?.label;
  const note = asObject(response)?.['note'];
  if (label !== undefined || typeof response === 'string')
    return (
      <p class="said">
        {nameInvisible(label ?? String(response))}
        {typeof note === 'string' && <> — {nameInvisible(note)}</>}
      </p>
    );
  return <Pretty value={response} label="Answer" />;
}

function About({ action }: { readonly action: JsonObject }): JSX.Element {
  const changes = readFileChanges(action);
  if (changes.length === 0) return <Pretty value={action} label="What it was about" />;
  return (
    <>
      {changes.map((change, index) => (
        <Diff key={index} change={change} />
      ))}
    </>
  );
}
