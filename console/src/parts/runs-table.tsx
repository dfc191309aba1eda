// Runs in rows, on phones as cards. While the pointer is over them no new row comes between it and what it is about to
// press.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { InteractionView, RunView } from '../../../src/client/index.js';
import { formatAge, formatTime } from '../state/format.js';
import { now } from '../state/now.js';
import { refine } from '../state/router.js';
import { matches, type Filter } from '../state/runs.js';
import { nameInProse } from '../../../src/kernel/visible-text.js';
import { Link } from './link.js';
import { StateBadge } from './state-badge.js';

const COLUMNS = ['State', 'Engine', 'Prompt', 'Blocked on you', 'Attempt', 'Age'] as const;
const FIRST_LINE = 200;

export function RunsTable({
  runs,
  filter,
}: {
  readonly runs: readonly RunView[];
  readonly filter: Filter;
}): JSX.Element {
  // The runs that were there when the pointer came; null: none is over them.
  const [held, setHeld] = useState<ReadonlySet<string> | null>(null);
  const [top] = runs;
  // Only what would push others down is kept back: older ones come when they are loaded.
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
            ↑ {firstHeld} new
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
        <StateBadge state={run.status} />
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
            title={`Only runs with ${name}=${value}`}
            onClick={() => refine({ label: `${name}=${value}` })}
          >
            {name}={value}
          </button>
        ))}
      </td>
      <td class="c-waits">
        {(interaction !== null || run.waited_ms > 0) && <Waits before={run.waited_ms} now={interaction} />}
      </td>
      <td class="c-attempt">
        <span class="phone">attempt </span>
        {run.attempt_number}
      </td>
      <td class="c-age">
        <Age since={created} />
      </td>
    </tr>
  );
}

// What changes with the clock is a part of its own, so that the rest of the row is not made anew each second.
function Age({ since }: { readonly since: string }): JSX.Element {
  return (
    <time dateTime={since} title={formatTime(since)}>
      {formatAge(now.value - Date.parse(since))}
    </time>
  );
}

// All in all, with what waits now; how long that has waited is said by the pointer.
function Waits({
  before,
  now: interaction,
}: {
  readonly before: number;
  readonly now: InteractionView | null;
}): JSX.Element {
  if (interaction === null)
    return (
      <span class="dim" title="how long its questions waited, all in all">
        <span class="phone">waited </span>
        {formatAge(before)}
      </span>
    );
  const { asked_at: since, due_at: due } = interaction;
  const waits = now.value - Date.parse(since);
  const isOverdue = now.value > Date.parse(due);
  const title =
    `asked ${formatTime(since)}, waits for ` +
    `${formatAge(waits)}${before > 0 ? `; waited ${formatAge(before)} before` : ''}`;
  return (
    <time dateTime={since} title={title} class={isOverdue ? 'bad' : 'warn'}>
      <span class="phone">waits </span>
      {formatAge(before + waits)}
      {isOverdue ? ', overdue' : ''}
    </time>
  );
}

function firstLine(prompt: string): string {
  const line = prompt.trim().split('\n', 1)[0] ?? '';
  return nameInProse(line.length > FIRST_LINE ? `${line.slice(0, FIRST_LINE)}…` : line);
}
