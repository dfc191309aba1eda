// A question and the ways to answer it: an option by key or click, or any text. An approval shows exactly what it
// allows and its four decisions.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { t } from '../language/language.js';
import type { InboxItem } from '../../../src/client/index.js';
import type { Json, JsonObject } from '../../../src/kernel/json.js';
import { answer, fates, type Fate } from '../state/inbox.js';
import { keep, recall } from '../state/drafts.js';
import { formatAge } from '../state/format.js';
import { now } from '../state/now.js';
import { mayAnswer } from '../state/server.js';
import { readFileChanges } from '../../../src/kernel/file-changes.js';
import { countNames, nameInLine, nameInProse, nameInvisible } from '../../../src/kernel/visible-text.js';
import { readApproval } from '../state/approval-text.js';
import { useReview } from '../state/review.js';
import { ApprovalBody, Decisions } from './approval.js';
import { FieldsForm } from './fields-form.js';
import { Link } from './link.js';
import { Markdown } from './markdown.js';
import { OptionLabel } from './option-label.js';

export interface Asked {
  readonly kind: string;
  readonly prompt: string;
  readonly options: readonly { readonly label: string; readonly value: Json; readonly description?: string }[];
  readonly fields?: readonly JsonObject[];
  readonly default?: Json;
  readonly channel?: string;
  readonly action?: JsonObject;
  readonly digest?: string;
  readonly response_schema?: JsonObject;
}

type Card = Pick<InboxItem, 'run_id' | 'interaction_id' | 'question' | 'asked_at' | 'overdue' | 'state'> &
  Partial<Pick<InboxItem, 'engine' | 'prompt' | 'labels' | 'due_at'>>;

interface CardProps {
  readonly item: Card;
  // Whether keys apply to this card.
  readonly isActive: boolean;
  readonly onActivate?: () => void;
  // False on the page of the run, which shows the prompt already.
  readonly showsRun?: boolean;
}

export function QuestionCard({ item, isActive, onActivate, showsRun = true }: CardProps): JSX.Element {
  const question = item.question as unknown as Asked;
  const fate = fates.value.get(item.interaction_id);
  // A question may become overdue while it is shown.
  const isOverdue =
    item.overdue || (item.state === 'pending' && item.due_at !== undefined && now.value > Date.parse(item.due_at));
  const age = formatAge(now.value - Date.parse(item.asked_at));
  const isSending = fate?.type === 'sending';
  const isDecided =
    item.state !== 'pending' || fate?.type === 'accepted' || fate?.type === 'answered' || fate?.type === 'gone';
  const isOpen =
    item.state === 'pending' &&
    (fate === undefined || fate.type === 'refused' || fate.type === 'unsent' || isSending) &&
    mayAnswer();
  const card = useRef<HTMLElement>(null);
  const asked = useRef<HTMLDivElement>(null);
  useReview(item.interaction_id, question.kind === 'approval', asked);
  // An answer removes the focused button: keep the focus on the card.
  useEffect(() => {
    if (fate && isActive && (document.activeElement === null || document.activeElement === document.body))
      card.current?.focus({ preventScroll: true });
  }, [fate?.type]);
  return (
    <article
      ref={card}
      class={`card${isActive ? ' active' : ''}${isOverdue ? ' overdue' : ''}`}
      data-interaction={item.interaction_id}
      tabIndex={-1}
      aria-label={t.question.label(question.prompt.slice(0, 80))}
      onFocusIn={onActivate}
      onPointerDown={onActivate}
    >
      <header>
        {item.engine !== undefined && <span class="engine">{item.engine}</span>}
        <span class="dim">
          {isDecided
            ? t.question.asked
            : question.kind === 'approval'
              ? t.question.asksPermission
              : question.channel === 'conversation'
                ? t.question.endedTurn
                : t.question.asks}
        </span>
        {!isDecided && (
          <time dateTime={item.asked_at} title={item.asked_at} class={isOverdue ? 'bad' : 'dim'}>
            {isOverdue ? t.time.overdue(age) : age}
          </time>
        )}
        {Object.entries(item.labels ?? {}).map(([name, value]) => (
          <span key={name} class="label">
            {name}={value}
          </span>
        ))}
        <span class="grow" />
        {!showsRun && isOpen && !isActive && <span class="hint dim">{t.question.answerByKeys(<kbd>j</kbd>)}</span>}
        {showsRun && (
          <Link to={`/runs/${item.run_id}`} data-key="o">
            {t.question.openRun}
          </Link>
        )}
      </header>
      {showsRun && item.prompt !== undefined && (
        <p class="about" title={nameInLine(item.prompt)}>
          {nameInProse(item.prompt)}
        </p>
      )}
      <div class="asked" ref={asked}>
        <Warning question={question} />
        {question.kind === 'approval' || question.action ? (
          <ApprovalBody prompt={question.prompt} action={question.action} />
        ) : (
          <div class="question">
            <Markdown text={question.prompt} />
          </div>
        )}
      </div>
      {/* Stays as long as the card: drafts are kept, and nothing moves under the pointer. */}
      {mayAnswer() && (
        <fieldset class="answers" disabled={!isOpen || isSending}>
          <Answers item={item} question={question} isActive={isActive && isOpen} />
        </fieldset>
      )}
      {!mayAnswer() && item.state === 'pending' && <Offered question={question} />}
      <p class="fate" role="status" aria-live="polite">
        {fate && <FateText fate={fate} />}
      </p>
    </article>
  );
}

// The options, for viewers, who may not answer.
function Offered({ question: { options, fields = [] } }: { readonly question: Asked }): JSX.Element {
  const offered = [...options.map(({ label }) => label), ...fields.map(({ prompt }) => String(prompt ?? ''))];
  return (
    <>
      {offered.length > 0 && (
        <ul class="offered">
          {offered.map((text, index) => (
            <li key={index}>
              <OptionLabel text={text} />
            </li>
          ))}
        </ul>
      )}
      <p class="dim">{t.question.viewOnly}</p>
    </>
  );
}

// A warning above texts with invisible characters.
function Warning({ question }: { readonly question: Asked }): JSX.Element | null {
  const { kind, prompt, options, fields = [], action } = question;
  const changes = readFileChanges(action);
  const choices = [...options, ...fields.flatMap((field) => (field['options'] ?? []) as unknown as Asked['options'])];
  const { command, values, reason, rest } = readApproval(prompt, action);
  const shown = [
    ...(kind === 'approval' || action
      ? [command ?? '', reason ?? '', rest, ...values.map(([, value]) => value)].map(nameInvisible)
      : [nameInProse(prompt)]),
    ...changes.flatMap(({ path, moveTo = '' }) => [nameInLine(path), nameInLine(moveTo)]),
    ...changes.flatMap(({ lines }) => lines.map(({ text }) => nameInvisible(text))),
    ...choices.flatMap(({ label, description = '' }) => [nameInvisible(label), nameInvisible(description)]),
    ...fields.map((field) => nameInProse(String(field['prompt'] ?? ''))),
  ];
  const count = shown.reduce((sum, part) => sum + countNames(part), 0);
  return count === 0 ? null : (
    <p class="notice bad" role="alert">
      {t.question.invisible(count)}
    </p>
  );
}

function useDraft(key: string): readonly [string, (text: string) => void] {
  const [text, setText] = useState(() => recall(key, ''));
  return [
    text,
    (next) => {
      keep(key, next);
      setText(next);
    },
  ];
}

const DECIDED: Readonly<Record<string, string>> = { ...t.fate.decided, finish: t.fate.finished };
const DECLINES: ReadonlySet<string> = new Set(['decline', 'cancel']);

function FateText({ fate }: { readonly fate: Fate }): JSX.Element {
  switch (fate.type) {
    case 'sending':
      return <span class="dim">{t.fate.sending}</span>;
    case 'accepted': {
      const decided = fate.decision === null ? undefined : DECIDED[fate.decision];
      if (decided !== undefined)
        return <span class={DECLINES.has(fate.decision ?? '') ? 'warn' : 'good'}>{decided}</span>;
      return (
        <span class="good">
          {fate.answer === '' ? t.fate.accepted : t.fate.acceptedWith(<strong>{nameInvisible(fate.answer)}</strong>)}
        </span>
      );
    }
    case 'answered':
      return <span class="bad">{t.fate.answered(fate.by)}</span>;
    case 'gone':
      return <span class="bad">{t.fate.gone(fate.why)}</span>;
    case 'unsent':
      return <span class="bad">{t.fate.unsent}</span>;
    case 'refused':
      return <span class="bad">{t.fate.refused(fate.why)}</span>;
  }
}

interface AnswerProps {
  readonly item: Card;
  readonly question: Asked;
  readonly isActive: boolean;
}

function Answers({ item, question, isActive }: AnswerProps): JSX.Element {
  const send = (response: Json, label?: string): void => void answer(item, { response }, label);
  const [note, setNote] = useDraft(`${item.interaction_id}/note`);
  if (question.kind === 'approval') return <Decisions item={item} isActive={isActive} note={note} onNote={setNote} />;
  if (question.fields && question.fields.length > 0)
    return (
      <FieldsForm id={item.interaction_id} fields={question.fields} schema={question.response_schema} onAnswer={send} />
    );
  return (
    <>
      {question.options.length > 0 && (
        <div class="options" role="group" aria-label={t.question.options}>
          {question.options.map(({ label, value, description }, index) => (
            <button
              key={index}
              type="button"
              data-key={index < 9 ? String(index + 1) : undefined}
              title={description && nameInvisible(description)}
              onClick={() => send(value, label)}
            >
              {index < 9 && <kbd class={isActive ? '' : 'idle'}>{index + 1}</kbd>} <OptionLabel text={label} />
              {description && <small>{nameInvisible(description)}</small>}
            </button>
          ))}
        </div>
      )}
      <FreeText item={item} question={question} isActive={isActive} />
    </>
  );
}

function FreeText({ item, question, isActive }: AnswerProps): JSX.Element {
  const [text, setText] = useDraft(`${item.interaction_id}/text`);
  const isConversation = question.channel === 'conversation';
  const send = (event: Event): void => {
    event.preventDefault();
    if (text.trim() !== '') void answer(item, { response: text }, text.length > 80 ? `${text.slice(0, 80)}…` : text);
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) send(event);
  };
  return (
    <form class="free" onSubmit={send}>
      <textarea
        rows={2}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={keys}
        placeholder={
          isConversation ? t.question.reply : question.options.length > 0 ? t.question.ownWords : t.question.answerHere
        }
        aria-label={t.question.yourAnswer}
        data-key="r"
      />
      <button type="submit" disabled={text.trim() === ''}>
        {t.question.send} <kbd>Ctrl ⏎</kbd>
      </button>
      {isConversation && (
        <button type="button" data-key="f" onClick={() => void answer(item, { finish: true })}>
          {t.question.finish}
          {isActive && (
            <>
              {' '}
              <kbd>f</kbd>
            </>
          )}
        </button>
      )}
    </form>
  );
}
