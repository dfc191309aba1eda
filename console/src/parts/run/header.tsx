// What a run is, in a few lines: what it was asked, by whom it is done, how it is and for how long, and what can be
// done with it.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { RunView } from '../../../../src/client/index.js';
import { formatAge, formatAgo, formatDuration, formatTime, shortId } from '../../state/format.js';
import { now } from '../../state/now.js';
import type { RunFeed } from '../../state/run-feed.js';
import { isEnd } from '../../state/run-way.js';
import { nameInLine, nameInProse } from '../../../../src/kernel/visible-text.js';
import { Link } from '../link.js';
import { Actions } from './actions.js';

export const STATE_WORDS = {
  queued: 'queued',
  running: 'running',
  waiting_user: 'waits for you',
  succeeded: 'succeeded',
  failed: 'failed',
  canceled: 'canceled',
} as const;
const LONG_CHARS = 160;

export function RunHeader({ feed, run }: { readonly feed: RunFeed; readonly run: RunView }): JSX.Element {
  void feed.version.value;
  const { way } = feed.model;
  const status = feed.isCurrent() ? way.state : run.status;
  const blockedMs = way.blockedMs(now.value);
  const lastedMs = Math.max(
    0,
    (isEnd(run.status) ? Date.parse(run.updated_at) : now.value) - Date.parse(run.created_at),
  );
  return (
    <header class="run-head">
      <Prompt text={run.prompt} />
      <p class="facts">
        <span class={`state ${status}`} role="status">
          {STATE_WORDS[status]}
        </span>
        <span class="engine">{run.engine}</span>
        {run.model !== null && <span>{run.model}</span>}
        <span>
          {run.execution_mode}, {run.permission}
        </span>
        <span>attempt {run.attempt_number}</span>
        <span title={formatTime(run.created_at)}>
          {isEnd(run.status)
            ? `took ${formatDuration(lastedMs)}, ${formatAgo(now.value - Date.parse(run.updated_at))}`
            : `for ${formatAge(lastedMs)}`}
        </span>
        {blockedMs > 0 && (
          <span class={status === 'waiting_user' ? 'warn' : ''}>blocked on you {formatDuration(blockedMs)}</span>
        )}
        {run.continue_from !== null && (
          <span>
            continues <Link to={`/runs/${run.continue_from}`}>{shortId(run.continue_from)}</Link>
          </span>
        )}
        {run.retry_of !== null && (
          <span>
            retry of <Link to={`/runs/${run.retry_of}`}>{shortId(run.retry_of)}</Link>
          </span>
        )}
        {run.fork_from !== null && (
          <span>
            forked from <Link to={`/runs/${run.fork_from}`}>{shortId(run.fork_from)}</Link>
          </span>
        )}
        {Object.entries(run.labels).map(([name, value]) => (
          <span key={name} class="label">
            {nameInLine(`${name}=${value}`)}
          </span>
        ))}
        <code class="id">{run.run_id}</code>
        <code class="cwd" title={`${run.run_id} works in ${run.cwd}`}>
          {nameInLine(run.cwd)}
        </code>
      </p>
      <Actions feed={feed} run={run} status={status} />
    </header>
  );
}

function Prompt({ text }: { readonly text: string }): JSX.Element {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > LONG_CHARS || text.trim().includes('\n');
  return (
    <div class="prompt">
      <h1 class={isWhole ? 'whole' : 'clipped'} tabIndex={isWhole ? 0 : undefined}>
        {nameInProse(text)}
      </h1>
      {isLong && (
        <button type="button" class="quiet" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? 'Show less' : 'Show all of it'}
        </button>
      )}
    </div>
  );
}
