// Details that can be expanded. They keep their state when a row leaves the screen and comes back.
import { createContext, type ComponentChildren, type JSX, type TargetedEvent } from 'preact';
import { useContext, useState } from 'preact/hooks';
import { t } from '../../language/language.js';
import type { Json } from '../../../../src/kernel/json.js';
import { nameInvisible } from '../../../../src/kernel/visible-text.js';
import { formatCount } from '../../state/format.js';

export const Opened = createContext<Set<string>>(new Set());

interface FoldProps {
  readonly id: string;
  readonly class?: string;
  readonly summary: ComponentChildren;
  // Called only while it is open.
  readonly children: () => ComponentChildren;
}

export function Fold({ id, class: name = '', summary, children }: FoldProps): JSX.Element {
  const opened = useContext(Opened);
  const [isOpen, setOpen] = useState(opened.has(id));
  const toggle = (event: TargetedEvent<HTMLDetailsElement>): void => {
    const { open } = event.currentTarget;
    if (open) opened.add(id);
    else opened.delete(id);
    setOpen(open);
  };
  return (
    <details class={`fold ${name}`} open={isOpen} onToggle={toggle}>
      <summary>{summary}</summary>
      {isOpen && <div class="folded">{children()}</div>}
    </details>
  );
}

const CLIP_CHARS = 20_000;

// Plain text. A very long text is shortened until it is expanded.
export function Plain({ text, label }: { readonly text: string; readonly label: string }): JSX.Element {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? text : text.slice(0, CLIP_CHARS);
  return (
    <>
      <pre class="plain" tabIndex={0} role="region" aria-label={label}>
        {nameInvisible(shown)}
      </pre>
      {shown.length < text.length && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          {t.conversation.showAllCharacters(formatCount(text.length))}
        </button>
      )}
    </>
  );
}

export function Pretty({ value, label }: { readonly value: Json | undefined; readonly label: string }): JSX.Element {
  return <Plain label={label} text={typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '')} />;
}
