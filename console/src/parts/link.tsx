// A link within the console. It changes the page without reloading it, and is a real link in every other respect.
import type { ComponentChildren, JSX } from 'preact';
import { go } from '../state/router.js';

interface LinkProps {
  readonly to: string;
  readonly class?: string;
  readonly title?: string;
  readonly 'aria-label'?: string;
  // The key that opens it, if it is in a card.
  readonly 'data-key'?: string;
  readonly 'aria-current'?: 'page' | undefined;
  readonly children: ComponentChildren;
}

export function Link({ to, children, ...rest }: LinkProps): JSX.Element {
  const follow = (event: MouseEvent): void => {
    // With a modifier key, the browser opens it in another tab or window.
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a {...rest} href={to} onClick={follow}>
      {children}
    </a>
  );
}
