// A diff, or the text of a new file, line by line.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { nameTurns } from '../state/visible.js';

const SHOWN = 200;

export function Diff({ path, kind, diff }: { readonly path: string; readonly kind: string; readonly diff: string }): JSX.Element {
  const [isWhole, setWhole] = useState(false);
  const lines = diff.replace(/\n$/, '').split('\n');
  const shown = isWhole ? lines : lines.slice(0, SHOWN);
  // A new file comes as its text, without signs.
  const isText = kind === 'add' && !lines.some((line) => line.startsWith('+'));
  return (
    <figure class="diff">
      <figcaption><span class={`kind ${kind}`}>{kind}</span> <code>{nameTurns(path)}</code></figcaption>
      <pre tabIndex={0}>{shown.map((line, index) => <span key={index} class={isText ? 'added' : classOf(line)}>{nameTurns(line)}{'\n'}</span>)}</pre>
      {lines.length > shown.length && <button type="button" class="quiet" onClick={() => setWhole(true)}>Show {lines.length - shown.length} more lines</button>}
    </figure>
  );
}

function classOf(line: string): string {
  if (line.startsWith('@@')) return 'hunk';
  return line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : '';
}
