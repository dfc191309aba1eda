// How each turn spent its time: queued, running, waiting for a person. A bar and the figures as text.
import type { JSX } from 'preact';
import { t } from '../../language/language.js';
import { formatDuration } from '../../state/format.js';
import { now } from '../../state/now.js';
import type { RunFeed } from '../../state/run-feed.js';
import { spanMs, type Attempt } from '../../state/run-path.js';

const SHOWN = 30;

export function Timeline({ feed }: { readonly feed: RunFeed }): JSX.Element {
  void feed.version.value;
  const { attempts } = feed.model.path;
  const shown = attempts.slice(-SHOWN);
  const longest = Math.max(1, ...shown.map((attempt) => lengthOf(attempt, now.value)));
  return (
    <ol class="timeline">
      {shown.length < attempts.length && (
        <li class="dim small">{t.run.earlierTurns(attempts.length - shown.length)}</li>
      )}
      {shown.map((attempt) => (
        <li key={attempt.number}>
          <div
            class="bar"
            aria-hidden="true"
            style={{ width: `${Math.max(6, (100 * lengthOf(attempt, now.value)) / longest)}%` }}
          >
            {attempt.spans.map((span, index) => (
              <span key={index} class={span.state} style={{ flexGrow: Math.max(1, spanMs(span, now.value)) }} />
            ))}
          </div>
          <span class="small">
            <strong>{attempt.number}</strong>{' '}
            {attempt.spans.map((span, index) => (
              <span key={index} class="figure">
                <i class={span.state} aria-hidden="true" />
                {t.states[span.state]} {formatDuration(spanMs(span, now.value))}
                {span.to === null ? '…' : ''}{' '}
              </span>
            ))}
          </span>
        </li>
      ))}
    </ol>
  );
}

function lengthOf({ spans }: Attempt, at: number): number {
  return spans.reduce((sum, span) => sum + spanMs(span, at), 0);
}
