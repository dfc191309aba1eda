// Keys that answer: those shown on the buttons of the selected card. They are ignored with a modifier, while the user
// types, and for a moment after the field disappeared while the user was typing: typed text must not decide anything.
import { useEffect, useRef } from 'preact/hooks';

interface Keys {
  readonly move?: (by: number) => void;
  // The card that keys apply to.
  readonly card: () => HTMLElement | null;
}

const MOVES: ReadonlySet<string> = new Set(['j', 'k', 'ArrowDown', 'ArrowUp']);
// How long after the last letter the user still counts as typing.
const TYPING_MS = 1500;

let typedAt = Number.NEGATIVE_INFINITY;

// Leaving a field deliberately ends typing.
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
      // Arrows move between radio buttons. A key that is held down must not decide twice.
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
  const control = card()?.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`);
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
