// Keys that answer: those that stand on the buttons of the chosen card. Not while somebody types, not with a modifier,
// and not while somebody goes on typing although the field is gone: what they write decides nothing.
import { useEffect, useRef } from 'preact/hooks';

interface Keys {
  readonly move?: (by: number) => void;
  // The card that keys go to.
  readonly card: () => HTMLElement | null;
}

const MOVES: ReadonlySet<string> = new Set(['j', 'k', 'ArrowDown', 'ArrowUp']);
// So long after the last letter somebody still types.
const TYPING_MS = 1500;

let typedAt = Number.NEGATIVE_INFINITY;

// Whoever leaves a field by a deed of their own does not type any more.
function endTyping(): void {
  typedAt = Number.NEGATIVE_INFINITY;
}
addEventListener('pointerdown', endTyping, { capture: true });
addEventListener('keydown', noteTyping, { capture: true });

function noteTyping(event: KeyboardEvent): void {
  if (event.key === 'Escape' || event.key === 'Tab' || (event.key === 'Enter' && (event.metaKey || event.ctrlKey)))
    endTyping();
  else if (isTyping(event.target) || performance.now() - typedAt < TYPING_MS) typedAt = performance.now();
}

export function useAnswerKeys(keys: Keys): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return;
      if (isTyping(event.target)) {
        if (event.key === 'Escape') (event.target as HTMLElement).blur();
        return;
      }
      if (performance.now() - typedAt < TYPING_MS) return;
      // Arrows choose among radio buttons; a key that is held down decides nothing twice.
      if (event.target instanceof HTMLInputElement && event.target.type === 'radio' && event.key.startsWith('Arrow'))
        return;
      if (event.repeat && !MOVES.has(event.key)) return;
      if (act(latest.current, event.key)) event.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

function act({ move, card }: Keys, key: string): boolean {
  if (move && (key === 'j' || key === 'ArrowDown')) return (move(1), true);
  if (move && (key === 'k' || key === 'ArrowUp')) return (move(-1), true);
  const chosen = card();
  const control = chosen?.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`);
  if (!control) return false;
  if (control instanceof HTMLTextAreaElement) control.focus();
  else control.click();
  return true;
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement ||
    (target instanceof HTMLInputElement && !['checkbox', 'radio', 'button'].includes(target.type))
  );
}
