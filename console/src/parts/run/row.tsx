// One row of the conversation, each in the way that fits it. All text is somebody else's: it is shown, never
// interpreted, but for Markdown that can do nothing.
import type { JSX } from 'preact';
import { formatCount, formatDuration } from '../../state/format.js';
import { summarizeDetails, type EngineDetail } from '../../../../src/fcmp/engine-details.js';
import type { DetailsRow, MessageRow, PlanRow, Row, UsageRow } from '../../state/run-rows.js';
import { nameInLine, nameInProse } from '../../../../src/kernel/visible-text.js';
import { Markdown } from '../markdown.js';
import { EndRow } from './end-row.js';
import { Fold, Plain, Pretty } from './fold.js';
import { ToolRow } from './tool-row.js';

// Beyond this, text is shown as it is: to make it pretty would hold the page up.
const MARKDOWN_CHARS = 60_000;
// As much of one that grows is made pretty with every piece.
const GROWING_CHARS = 12_000;
const FILES = 400;
const SUMMARY_CHARS = 140;

type Shown = Exclude<Row, { type: 'question' }>;

// rev: that it is drawn anew when the row was changed in place.
export function RowBody({ row }: { readonly row: Shown; readonly rev: number }): JSX.Element {
  switch (row.type) {
    case 'user':
      return (
        <div class="said-by-user">
          <span class="dim small">Prompt</span>
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
              <span class="name">Thought</span> <span class="line dim">{firstLine(row.text)}</span>
            </>
          }
        >
          {() => <Plain text={row.text} label="What it thought" />}
        </Fold>
      );
    case 'plan':
      return <Plan row={row} />;
    case 'tool':
      return <ToolRow row={row} />;
    case 'files':
      return (
        <p class="files">
          <span class="dim">{row.files.length === 1 ? 'File changed' : `${row.files.length} files changed`}</span>
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
          <span>Attempt {row.number}</span>
          {row.waitedMs > 0 && <small> after {formatDuration(row.waitedMs)} of waiting for you</small>}
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
  // Whoever watches it grow looks at its end.
  if (state === 'growing' && text.length > GROWING_CHARS) {
    return (
      <div class="message">
        <p class="dim small">… {formatCount(text.length - GROWING_CHARS)} characters before</p>
        <Plain text={text.slice(-GROWING_CHARS)} label="The message so far" />
      </div>
    );
  }
  return (
    <div class={`message ${state}`}>
      {text.length <= MARKDOWN_CHARS ? <Markdown text={text} cachedBy={row} /> : <Plain text={text} label="Message" />}
      {state === 'cut' && <p class="warn small">The turn ended here, in the middle of the message.</p>}
      {isTruncated && (
        <p class="warn small">The message was too long to be kept whole in one event; the evidence has all of it.</p>
      )}
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
          <span class="unseen">{item.done ? ' (done)' : ' (to do)'}</span>
        </li>
      ))}
    </ol>
  );
  if (row.isOld)
    return (
      <Fold
        id={row.key}
        class="reasoning"
        summary={
          <span class="dim">
            An earlier plan: {done} of {row.items.length} done
          </span>
        }
      >
        {() => list}
      </Fold>
    );
  return (
    <div class="plan-box">
      <span class="dim small">
        Plan, {done} of {row.items.length} done
      </span>
      {list}
    </div>
  );
}

function detailLine({ kind, text }: EngineDetail): string {
  return kind === 'done' ? text : `${kind}: ${text}`;
}

// All of a turn in one line, opened when somebody wants it.
function Details({ row }: { readonly row: DetailsRow; readonly rev: number }): JSX.Element {
  const summary = (
    <>
      <span class="name">Engine details</span> <span class="line dim">{summarizeDetails(row.counts)}</span>
    </>
  );
  return (
    <Fold id={row.key} class="raw" summary={summary}>
      {() => <Plain text={row.details.map(detailLine).join('\n')} label="Engine details" />}
    </Fold>
  );
}

const SCOPES = { step: 'this turn', turn: 'this turn', thread: 'the conversation so far' } as const;

function Usage({ row: { usage } }: { readonly row: UsageRow }): JSX.Element {
  const parts = [
    usage.model,
    usage.input_tokens === undefined
      ? undefined
      : `${formatCount(usage.input_tokens)} tokens ` +
        `in${usage.cached_input_tokens === undefined ? '' : ` (${formatCount(usage.cached_input_tokens)} cached)`}`,
    usage.output_tokens === undefined
      ? undefined
      : `${formatCount(usage.output_tokens)} ` +
        `out${usage.reasoning_tokens ? ` (${formatCount(usage.reasoning_tokens)} thinking)` : ''}`,
    usage.cost_usd === undefined ? undefined : `$${usage.cost_usd.toFixed(4)}`,
    usage.duration_ms === undefined ? undefined : formatDuration(usage.duration_ms),
  ];
  return (
    <p class="usage dim small">
      {SCOPES[usage.scope]}: {parts.filter((part) => part !== undefined).join(' · ')}
    </p>
  );
}

function firstLine(text: string): string {
  return nameInLine((text.trimStart().split('\n', 1)[0] ?? '').slice(0, SUMMARY_CHARS));
}
