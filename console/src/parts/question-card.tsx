// A question and the ways to answer it: its options by a key or a click, words of one's own always; an approval by its
// four decisions, with exactly what it is about.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { InboxItem } from '../../../src/client/index.js';
import type { Json, JsonObject } from '../../../src/kernel/json.js';
import { answer, fates, type Fate } from '../state/inbox.js';
import { keep, recall } from '../state/drafts.js';
import { formatAge } from '../state/format.js';
import { now } from '../state/now.js';
import { mayAnswer } from '../state/server.js';
import { readFileChanges } from '../../../src/kernel/file-changes.js';
import { nameInLine, nameInProse, nameInvisible, warnOfNames } from '../../../src/kernel/visible-text.js';
import { useReview } from '../state/review.js';
import { Action, Decisions } from './approval.js';
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
  // Keys go to it.
  readonly isActive: boolean;
  readonly onActivate?: () => void;
  // In the run itself, what it was asked to do need not be said again.
  readonly showsRun?: boolean;
}

export function QuestionCard({ item, isActive, onActivate, showsRun = true }: CardProps): JSX.Element {
  const question = item.question as unknown as Asked;
  const fate = fates.value.get(item.interaction_id);
  // It may become so while it is shown.
  const isOverdue =
    item.overdue || (item.state === 'pending' && item.due_at !== undefined && now.value > Date.parse(item.due_at));
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
  // With the answer the button goes that had the focus.
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
      aria-label={`Question: ${question.prompt.slice(0, 80)}`}
      onFocusIn={onActivate}
      onPointerDown={onActivate}
    >
      <header>
        {item.engine !== undefined && <span class="engine">{item.engine}</span>}
        <span class="dim">
          {isDecided
            ? 'asked'
            : question.kind === 'approval'
              ? 'asks for permission'
              : question.channel === 'conversation'
                ? 'ended its turn'
                : 'asks'}
        </span>
        {!isDecided && (
          <time dateTime={item.asked_at} title={item.asked_at} class={isOverdue ? 'bad' : 'dim'}>
            {formatAge(now.value - Date.parse(item.asked_at))}
            {isOverdue ? ', overdue' : ''}
          </time>
        )}
        {Object.entries(item.labels ?? {}).map(([name, value]) => (
          <span key={name} class="label">
            {name}={value}
          </span>
        ))}
        <span class="grow" />
        {!showsRun && isOpen && !isActive && (
          <span class="hint dim">
            <kbd>j</kbd> to answer by keys
          </span>
        )}
        {showsRun && (
          <Link to={`/runs/${item.run_id}`} data-key="o">
            Open the run
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
        <div class="question">
          {question.kind === 'approval' ? (
            <pre class="plain whole">{nameInvisible(question.prompt)}</pre>
          ) : (
            <Markdown text={question.prompt} />
          )}
        </div>
        {question.action && <Action action={question.action} />}
      </div>
      {/* Never taken away before the card is: what was written is still there, and nothing moves under a pointer. */}
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

// For who may not answer: what could be.
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
      <p class="dim">You may look, but not answer.</p>
    </>
  );
}

// Stands above what has characters that cannot be seen.
function Warning({ question }: { readonly question: Asked }): JSX.Element | null {
  const { kind, prompt, options, fields = [], action } = question;
  const { changes: _changes, ...rest } = action ?? {};
  const changes = readFileChanges(action);
  const choices = [...options, ...fields.flatMap((field) => (field['options'] ?? []) as unknown as Asked['options'])];
  const warning = warnOfNames([
    kind === 'approval' ? nameInvisible(prompt) : nameInProse(prompt),
    ...Object.values(rest).map((value) => nameInvisible(typeof value === 'string' ? value : JSON.stringify(value))),
    ...changes.flatMap(({ path, moveTo = '' }) => [nameInLine(path), nameInLine(moveTo)]),
    ...changes.flatMap(({ lines }) => lines.map(({ text }) => nameInvisible(text))),
    ...choices.flatMap(({ label, description = '' }) => [nameInvisible(label), nameInvisible(description)]),
    ...fields.map((field) => nameInProse(String(field['prompt'] ?? ''))),
  ]);
  return warning === null ? null : (
    <p class="notice bad" role="alert">
      {warning}
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

function FateText({ fate }: { readonly fate: Fate }): JSX.Element {
  switch (fate.type) {
    case 'sending':
      return <span class="dim">Sending…</span>;
    case 'accepted':
      if (fate.decision === 'decline') return <span class="warn">You declined this. The agent has been told.</span>;
      if (fate.decision === 'cancel') {
        return <span class="warn">You declined this and stopped the agent. It has been told.</span>;
      }
      return (
        <span class="good">
          Accepted
          {fate.said === '' ? (
            '.'
          ) : (
            <>
              : <strong>{nameInvisible(fate.said)}</strong>
            </>
          )}
        </span>
      );
    case 'answered':
      return <span class="bad">Already answered by {fate.by}.</span>;
    case 'gone':
      return <span class="bad">Not needed any more: {fate.why}</span>;
    case 'unsent':
      return (
        <span class="bad">
          The server was not reached, or its answer was lost. Send it again: the same answer counts once.
        </span>
      );
    case 'refused':
      return <span class="bad">Not accepted: {fate.why}</span>;
  }
}

function Answers({
  item,
  question,
  isActive,
}: {
  readonly item: Card;
  readonly question: Asked;
  readonly isActive: boolean;
}): JSX.Element {
  const give = (response: Json, said?: string): void => void answer(item, { response }, said);
  const [note, setNote] = useDraft(`${item.interaction_id}/note`);
  if (question.kind === 'approval') return <Decisions item={item} isActive={isActive} note={note} onNote={setNote} />;
  if (question.fields && question.fields.length > 0)
    return (
      <FieldsForm id={item.interaction_id} fields={question.fields} schema={question.response_schema} onAnswer={give} />
    );
  return (
    <>
      {question.options.length > 0 && (
        <div class="options" role="group" aria-label="Offered answers">
          {question.options.map(({ label, value, description }, index) => (
            <button
              key={index}
              type="button"
              data-key={index < 9 ? String(index + 1) : undefined}
              title={description && nameInvisible(description)}
              onClick={() => give(value, label)}
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

function FreeText({
  item,
  question,
  isActive,
}: {
  readonly item: Card;
  readonly question: Asked;
  readonly isActive: boolean;
}): JSX.Element {
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
          isConversation ? 'Say more…' : question.options.length > 0 ? 'Or in your own words…' : 'Your answer…'
        }
        aria-label="Your answer"
        data-key="r"
      />
      <button type="submit" disabled={text.trim() === ''}>
        Send <kbd>Ctrl ⏎</kbd>
      </button>
      {isConversation && (
        <button type="button" data-key="f" onClick={() => void answer(item, { finish: true }, 'Finish')}>
          Finish
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
