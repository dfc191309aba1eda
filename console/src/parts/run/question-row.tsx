// A question in the conversation: while it waits with the ways to answer it, then with its answer, who gave it and
// when.
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import { t } from '../../language/language.js';
import type { InboxItem, InteractionView, Question } from '../../../../src/client/index.js';
import { asObject, type Json } from '../../../../src/kernel/json.js';
import { formatTime } from '../../state/format.js';
import { fates, inbox } from '../../state/inbox.js';
import type { QuestionRow as Row } from '../../state/run-rows.js';
import { readFileChanges } from '../../../../src/kernel/file-changes.js';
import { nameInvisible } from '../../../../src/kernel/visible-text.js';
import { ApprovalText } from '../approval.js';
import { Diff } from '../diff.js';
import { Markdown } from '../markdown.js';
import { QuestionCard, type Asked } from '../question-card.js';
import { Fold, Pretty } from './fold.js';

interface QuestionProps {
  readonly runId: string;
  // The pending question of the run. Unlike the events, it has everything that an approval allows.
  readonly pending: InteractionView | null;
  readonly row: Row;
  readonly rev: number;
  // Whether all events so far are loaded.
  readonly isCurrent: boolean;
  readonly isActive: boolean;
  readonly onActivate: () => void;
}

export function QuestionRow({ runId, pending, row, isCurrent, isActive, onActivate }: QuestionProps): JSX.Element {
  const question = row.question as unknown as Asked;
  const isConversation = question.channel === 'conversation';
  const fate = fates.value.get(row.interactionId);
  // Whether an answer was sent from this page, successful or not.
  const tried = useRef(false);
  if (fate?.type === 'sending') tried.current = true;
  // The inbox shortens long questions. The run has them in full.
  const listed = inbox.value.find(
    ({ interaction_id: id, truncated }) => id === row.interactionId && !truncated.includes('question'),
  );
  const waiting = listed ?? (pending?.interaction_id === row.interactionId ? pending : undefined);
  // Nobody should approve an action that is not shown.
  if (row.resolution.type === 'pending' && isCurrent && (waiting !== undefined || question.kind !== 'approval')) {
    const asked = waiting?.question ?? (row.question as unknown as Question);
    // The last message is already shown above.
    const shown = isConversation ? { ...asked, prompt: t.answered.waitingForReply } : asked;
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
  const changes = readFileChanges(question.action);
  return (
    <div class={`asked ${isConversation ? 'turn' : ''}`}>
      {!isConversation && (
        <div class="question">
          <span class="dim small">{question.kind === 'approval' ? t.answered.askedPermission : t.answered.asked}</span>
          {question.kind === 'approval' || question.action ? (
            <ApprovalText prompt={question.prompt} action={question.action} />
          ) : (
            <Markdown text={question.prompt} cachedBy={row} />
          )}
          {changes.length > 0 && (
            <Fold id={`${row.key}/action`} summary={t.answered.changes}>
              {() => changes.map((change, index) => <Diff key={index} change={change} />)}
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
      return <p class="answer dim">{t.answered.unanswered}</p>;
    case 'decided':
      return (
        <div class="answer">
          <p class="dim small">{t.answered.decided(<code>{resolution.policy}</code>, <When at={resolution.at} />)}</p>
          {resolution.response !== undefined && <AnswerText response={resolution.response} question={question} />}
        </div>
      );
    case 'answered':
      return (
        <div class="answer">
          <p class="dim small">
            {t.answered.by(
              resolution.finish ? t.answered.deeds.finish : deedOf(resolution.response),
              <strong>{resolution.by ?? t.someone}</strong>,
              <When at={resolution.at} />,
              resolution.review === 'unread',
            )}
          </p>
          {resolution.response !== undefined && !resolution.finish && (
            <AnswerText response={resolution.response} question={question} />
          )}
          {isLate && (
            <p class="bad" role="status">
              {t.answered.tooLate}
            </p>
          )}
        </div>
      );
  }
}

const DEEDS: Readonly<Record<string, string>> = t.answered.deeds;

function deedOf(response: Json | undefined): string {
  const decision = asObject(response)?.['decision'];
  return (typeof decision === 'string' ? DEEDS[decision] : undefined) ?? t.answered.deeds.answer;
}

function When({ at }: { readonly at: string }): JSX.Element {
  return <time dateTime={at}>{formatTime(at)}</time>;
}

// The answer, with the label of the chosen option if there is one.
function AnswerText({ response, question }: { readonly response: Json; readonly question: Asked }): JSX.Element {
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
  return <Pretty value={response} label={t.answered.answer} />;
}
