// The change of one file, line by line, with the sign of each line and the number of lines. A change that needs
// approval is shown completely. Elsewhere a long change is shortened until it is expanded.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { t } from '../language/language.js';
import type { ChangedLine, FileChange } from '../../../src/kernel/file-changes.js';
import { nameInLine, nameInvisible } from '../../../src/kernel/visible-text.js';

const SHOWN = 200;
const CLASSES: Readonly<Record<ChangedLine['sign'], string>> = { '+': 'added', '-': 'removed', ' ': '', '@': 'hunk' };
const KINDS: Readonly<Record<string, string>> = t.diff.kinds;

interface DiffProps {
  readonly change: FileChange;
  // The whole change must be read before it is approved.
  readonly isReviewed?: boolean;
}

export function Diff({ change, isReviewed = false }: DiffProps): JSX.Element {
  const { path, moveTo, kind, lines, added, removed } = change;
  const [isWhole, setWhole] = useState(isReviewed);
  const shown = isWhole ? lines : lines.slice(0, SHOWN);
  return (
    <figure class="diff">
      <figcaption>
        <span class={`kind ${kind}`}>{KINDS[kind] ?? kind}</span>{' '}
        <code>
          {nameInLine(path)}
          {moveTo !== undefined && ` → ${nameInLine(moveTo)}`}
        </code>{' '}
        <span class="counts">
          +{added} −{removed}
        </span>
      </figcaption>
      <pre tabIndex={0}>
        {shown.map(({ sign, text }, index) => (
          <span key={index} class={CLASSES[sign]}>
            {sign === '@' ? '' : `${sign} `}
            {nameInvisible(text)}
            {'\n'}
          </span>
        ))}
      </pre>
      {lines.length > shown.length && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          {t.diff.showMore(lines.length - shown.length)}
        </button>
      )}
    </figure>
  );
}
