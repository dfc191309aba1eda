// Not built yet.
import type { JSX } from 'preact';

export function NewRunPage(): JSX.Element {
  return <p>NewRunPage</p>;
}
