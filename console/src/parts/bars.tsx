// Shows a few numbers as bars. Each has its name and number as text, so the bars only repeat what the text says.
import type { JSX } from 'preact';
import { formatCount } from '../state/format.js';

interface BarsProps {
  readonly title: string;
  readonly counts: Readonly<Record<string, number>>;
  // Shown if there are no counts.
  readonly none: string;
  readonly tone: 'accent' | 'warn' | 'bad';
}

export function Bars({ title, counts, none, tone }: BarsProps): JSX.Element {
  const rows = Object.entries(counts).toSorted((a, b) => b[1] - a[1]);
  const most = Math.max(1, ...rows.map(([, count]) => count));
  return (
    <section class="bars">
      <h4>{title}</h4>
      {rows.length === 0 ? (
        <p class="dim">{none}</p>
      ) : (
        <ul>
          {rows.map(([name, count]) => (
            <li key={name}>
              <code>{name}</code>
              <Bar share={count / most} tone={tone} />
              <span class="number">{formatCount(count)}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

export function Bar({
  share,
  tone,
}: {
  readonly share: number;
  readonly tone: 'accent' | 'good' | 'warn' | 'bad';
}): JSX.Element {
  return (
    <svg class={`bar ${tone}`} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect class="ground" width="100" height="6" />
      <rect class="value" width={Math.min(Math.max(share, 0), 1) * 100} height="6" />
    </svg>
  );
}
