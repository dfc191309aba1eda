// Draws one row of the conversation by its type. All text comes from engines and people: it is shown and never
// interpreted, except as inert Markdown.
import type { JSX } from 'preact';
import { t } from '../../language/language.js';
import { formatCount, formatDuration } from '../../state/format.js';
import type { EngineDetail } from '../../../../src/fcmp/engine-details.js';
import type { DetailsRow, MessageRow, PlanRow, Row, UsageRow } from '../../state/run-rows.js';
import { nameInLine, nameInProse } from '../../../../src/kernel/visible-text.js';
import { Markdown } from '../markdown.js';
import { EndRow } from './end-row.js';
import { Fold, Plain, Pretty } from './fold.js';
import { ToolRow } from './tool-row.js';

// Longer text is shown without Markdown: rendering it would block the page.
const MARKDOWN_CHARS = 60_000;
// How much of a growing message is rendered with each new piece.
const GROWING_CHARS = 12_000;
const FILES = 400;
const SUMMARY_CHARS = 140;

type Shown = Exclude<Row, { type: 'question' }>;

// `rev` changes when the row was changed in place, so that it is drawn again.
export function RowBody({ row }: { readonly row: Shown; readonly rev: number }): JSX.Element {
  switch (row.type) {
    case 'user':
      return (
        <div class="said-by-user">
          <span class="dim small">{t.conversation.rows.user}</span>
          <Markdown text={row.text} cachedBy={row} />
        </div>
      );
    case 'message':
      return <Message row={row} />;
    case 'reasoning':
      return (
        <Fold
          id={row.key}
          class="reasoning"
          summary={
            <>
              <span class="name">{t.conversation.rows.reasoning}</span>{' '}
              <span class="line dim">{firstLine(row.text)}</span>
            </>
          }
        >
          {() => <Plain text={row.text} label={t.conversation.rows.reasoning} />}
        </Fold>
      );
    case 'plan':
      return <Plan row={row} />;
    case 'tool':
      return <ToolRow row={row} />;
    case 'files':
      return (
        <p class="files">
          <span class="dim">{t.conversation.filesChanged(row.files.length)}</span>
          {row.files.slice(0, FILES).map(({ path, kind }, index) => (
            <code key={index} title={kind}>
              {kind === 'add' ? '+ ' : kind === 'delete' ? '− ' : ''}
              {nameInLine(path)}
            </code>
          ))}
        </p>
      );
    case 'usage':
      return <Usage row={row} />;
    case 'attempt':
      return (
        <h3 class="rule">
          <span>{t.conversation.turn(row.number)}</span>
          {row.waitedMs > 0 && <small>{t.conversation.afterWaiting(formatDuration(row.waitedMs))}</small>}
        </h3>
      );
    case 'details':
      return <Details row={row} rev={row.rev} />;
    case 'end':
      return <EndRow row={row} />;
    case 'unknown':
      return (
        <Fold id={row.key} class="raw" summary={<span class="dim">{row.name}</span>}>
          {() => <Pretty value={row.data} label={row.name} />}
        </Fold>
      );
  }
}

function Message({ row }: { readonly row: MessageRow }): JSX.Element {
  const { text, state, isTruncated } = row;
  // Shows the end of a long message while it grows.
  if (state === 'growing' && text.length > GROWING_CHARS) {
    return (
      <div class="message">
        <p class="dim small">{t.conversation.earlierCharacters(formatCount(text.length - GROWING_CHARS))}</p>
        <Plain text={text.slice(-GROWING_CHARS)} label={t.conversation.messageSoFar} />
      </div>
    );
  }
  return (
    <div class={`message ${state}`}>
      {text.length <= MARKDOWN_CHARS ? (
        <Markdown text={text} cachedBy={row} />
      ) : (
        <Plain text={text} label={t.conversation.rows.message} />
      )}
      {state === 'cut' && <p class="warn small">{t.conversation.cut}</p>}
      {isTruncated && <p class="warn small">{t.conversation.tooLong}</p>}
    </div>
  );
}

function Plan({ row }: { readonly row: PlanRow }): JSX.Element {
  const done = row.items.filter((item) => item.done).length;
  const list = (
    <ol class="plan">
      {row.items.map((item, index) => (
        <li key={index} class={item.done ? 'done' : ''}>
          <span aria-hidden="true">{item.done ? '✓' : '○'}</span> {nameInProse(item.text)}
          <span class="unseen">{item.done ? t.conversation.planItemDone : t.conversation.planItemToDo}</span>
        </li>
      ))}
    </ol>
  );
  if (row.isOld)
    return (
      <Fold
        id={row.key}
        class="reasoning"
        summary={<span class="dim">{t.conversation.earlierPlan(done, row.items.length)}</span>}
      >
        {() => list}
      </Fold>
    );
  return (
    <div class="plan-box">
      <span class="dim small">{t.conversation.plan(done, row.items.length)}</span>
      {list}
    </div>
  );
}

function detailLine({ kind, text }: EngineDetail): string {
  return kind === 'done' ? text : `${t.conversation.details[kind]}: ${text}`;
}

// All engine details of a turn in one line that can be expanded.
function Details({ row }: { readonly row: DetailsRow; readonly rev: number }): JSX.Element {
  const summary = (
    <>
      <span class="name">{t.conversation.rows.details}</span>{' '}
      <span class="line dim">{t.conversation.detailCounts(row.counts)}</span>
    </>
  );
  return (
    <Fold id={row.key} class="raw" summary={summary}>
      {() => <Plain text={row.details.map(detailLine).join('\n')} label={t.conversation.rows.details} />}
    </Fold>
  );
}

function Usage({ row: { usage } }: { readonly row: UsageRow }): JSX.Element {
  const parts = [
    usage.model,
    usage.input_tokens === undefined
      ? undefined
      : t.conversation.tokensIn(
          formatCount(usage.input_tokens),
          usage.cached_input_tokens === undefined ? null : formatCount(usage.cached_input_tokens),
        ),
    usage.output_tokens === undefined
      ? undefined
      : t.conversation.tokensOut(
          formatCount(usage.output_tokens),
          usage.reasoning_tokens ? formatCount(usage.reasoning_tokens) : null,
        ),
    usage.cost_usd === undefined ? undefined : `$${usage.cost_usd.toFixed(4)}`,
    usage.duration_ms === undefined ? undefined : formatDuration(usage.duration_ms),
  ];
  const figures = parts.filter((part) => part !== undefined).join(' · ');
  return <p class="usage dim small">{t.conversation.usage(t.conversation.usageOf[usage.scope], figures)}</p>;
}

function firstLine(text: string): string {
  return nameInLine((text.trimStart().split('\n', 1)[0] ?? '').slice(0, SUMMARY_CHARS));
}
