// Runs as rows, on phones as cards. While the pointer is over them, no new row moves the one that is about to be
// clicked.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { t } from '../language/language.js';
import type { InteractionView, RunView } from '../../../src/client/index.js';
import { formatAge, formatTime } from '../state/format.js';
import { now } from '../state/now.js';
import { refine } from '../state/router.js';
import { matches, type Filter } from '../state/runs.js';
import { nameInProse } from '../../../src/kernel/visible-text.js';
import { Link } from './link.js';
import { StateBadge } from './state-badge.js';

const COLUMNS = Object.values(t.runs.columns);
const FIRST_LINE = 200;

export function RunsTable({
  runs,
  filter,
}: {
  readonly runs: readonly RunView[];
  readonly filter: Filter;
}): JSX.Element {
  // The runs listed when the pointer entered; null while it is outside.
  const [held, setHeld] = useState<ReadonlySet<string> | null>(null);
  const [top] = runs;
  // Holds back only new runs, which would push others down. Older runs appear when they are loaded.
  const firstHeld =
    held === null
      ? 0
      : Math.max(
          0,
          runs.findIndex(({ run_id: id }) => held.has(id)),
        );
  const shown = runs.slice(firstHeld);
  useEffect(() => {
    if (held !== null && top === undefined) setHeld(null);
  }, [held, top]);
  const enter = (event: PointerEvent): void => {
    if (event.pointerType === 'mouse') setHeld(new Set(runs.map(({ run_id: id }) => id)));
  };
  return (
    <>
      <p class="held" role="status">
        {firstHeld > 0 && (
          <button type="button" class="quiet" onClick={() => setHeld(null)}>
            {t.runs.fresh(firstHeld)}
          </button>
        )}
      </p>
      <table onPointerEnter={enter} onPointerLeave={() => setHeld(null)}>
        <thead>
          <tr>
            {COLUMNS.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((run) => (
            <RunRow key={run.run_id} run={run} isOther={!matches(run, filter)} />
          ))}
        </tbody>
      </table>
    </>
  );
}

function RunRow({ run, isOther }: { readonly run: RunView; readonly isOther: boolean }): JSX.Element {
  const { run_id: id, prompt, labels, error, interaction, created_at: created } = run;
  const line = firstLine(prompt);
  return (
    <tr data-run={id} class={isOther ? 'other' : ''}>
      <td class="c-state">
        <StateBadge run={run} />
      </td>
      <td class="c-engine">
        <span class="engine">{run.engine}</span>
      </td>
      <td class="c-prompt">
        <Link to={`/runs/${id}`} class="open" data-key="o" title={line}>
          {line}
        </Link>
        {error && (
          <span class="error bad" title={error.message}>
            <code>{error.code}</code>
          </span>
        )}
        {Object.entries(labels).map(([name, value]) => (
          <button
            key={name}
            type="button"
            class="label"
            title={t.runs.onlyLabel(`${name}=${value}`)}
            onClick={() => refine({ label: `${name}=${value}` })}
          >
            {name}={value}
          </button>
        ))}
      </td>
      <td class="c-waits">
        {(interaction !== null || run.waited_ms > 0) && <Waited before={run.waited_ms} pending={interaction} />}
      </td>
      <td class="c-attempt">
        <span class="phone">{t.runs.turnOnPhone}</span>
        {run.attempt_number}
      </td>
      <td class="c-age">
        <Age since={created} />
      </td>
    </tr>
  );
}

// A separate component, so that only the age is drawn again each second.
function Age({ since }: { readonly since: string }): JSX.Element {
  return (
    <time dateTime={since} title={formatTime(since)}>
      {formatAge(now.value - Date.parse(since))}
    </time>
  );
}

// The total time including the pending question. The tooltip has the time of the pending question alone.
function Waited({
  before,
  pending,
}: {
  readonly before: number;
  readonly pending: InteractionView | null;
}): JSX.Element {
  if (pending === null)
    return (
      <span class="dim" title={t.runs.waitedHelp}>
        <span class="phone">{t.runs.waitedOnPhone}</span>
        {formatAge(before)}
      </span>
    );
  const { asked_at: since, due_at: due } = pending;
  const waitedMs = now.value - Date.parse(since);
  const isOverdue = now.value > Date.parse(due);
  const title = t.runs.waitingHelp(formatTime(since), formatAge(waitedMs), before > 0 ? formatAge(before) : null);
  const age = formatAge(before + waitedMs);
  return (
    <time dateTime={since} title={title} class={isOverdue ? 'bad' : 'warn'}>
      <span class="phone">{t.runs.waitingOnPhone}</span>
      {isOverdue ? t.time.overdue(age) : age}
    </time>
  );
}

function firstLine(prompt: string): string {
  const line = prompt.trim().split('\n', 1)[0] ?? '';
  return nameInProse(line.length > FIRST_LINE ? `${line.slice(0, FIRST_LINE)}…` : line);
}
