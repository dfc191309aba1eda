// The summary of a run: its prompt, engine, state and duration, and its actions.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { t } from '../../language/language.js';
import type { RunView } from '../../../../src/client/index.js';
import { formatAgo, formatDuration, formatTime, shortId } from '../../state/format.js';
import { now } from '../../state/now.js';
import type { RunFeed } from '../../state/run-feed.js';
import { isEnd } from '../../state/run-path.js';
import { nameInLine, nameInProse } from '../../../../src/kernel/visible-text.js';
import { Link } from '../link.js';
import { Actions } from './actions.js';

const LONG_CHARS = 160;

export function RunHeader({ feed, run }: { readonly feed: RunFeed; readonly run: RunView }): JSX.Element {
  void feed.version.value;
  const { path } = feed.model;
  const status = feed.isCurrent() ? path.state : run.status;
  const waitedMs = path.waitedMs(now.value);
  const created = Date.parse(run.created_at);
  const updated = Date.parse(run.updated_at);
  return (
    <header class="run-head">
      <Prompt text={run.prompt} />
      <p class="facts">
        <span class={`state ${status}`} role="status">
          {run.recovering && status === 'running' ? t.recovering : t.states[status]}
        </span>
        <span class="engine">{run.engine}</span>
        {run.model !== null && <span>{run.model}</span>}
        <span>
          {t.modes[run.execution_mode].name} · {t.permissions[run.permission].name}
        </span>
        <span>{t.run.turn(run.attempt_number)}</span>
        <span title={formatTime(run.created_at)}>
          {isEnd(run.status)
            ? t.run.took(formatDuration(Math.max(0, updated - created)), formatAgo(now.value - updated))
            : t.run.started(formatAgo(now.value - created))}
        </span>
        {waitedMs > 0 && (
          <span class={status === 'waiting_user' ? 'warn' : ''}>{t.run.waited(formatDuration(waitedMs))}</span>
        )}
        {run.continue_from !== null && <span>{t.run.continues(<RunLink id={run.continue_from} />)}</span>}
        {run.retry_of !== null && <span>{t.run.retryOf(<RunLink id={run.retry_of} />)}</span>}
        {run.fork_from !== null && <span>{t.run.forkedFrom(<RunLink id={run.fork_from} />)}</span>}
        {Object.entries(run.labels).map(([name, value]) => (
          <span key={name} class="label">
            {nameInLine(`${name}=${value}`)}
          </span>
        ))}
        <code class="id">{run.run_id}</code>
        <code class="cwd" title={t.run.folder(run.run_id, run.cwd)}>
          {nameInLine(run.cwd)}
        </code>
      </p>
      <Actions feed={feed} run={run} status={status} />
    </header>
  );
}

function RunLink({ id }: { readonly id: string }): JSX.Element {
  return <Link to={`/runs/${id}`}>{shortId(id)}</Link>;
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
          {isWhole ? t.run.showLess : t.run.showAll}
        </button>
      )}
    </div>
  );
}
