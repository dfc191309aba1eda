// Not built yet.
import type { JSX } from 'preact';

export function RunsPage(): JSX.Element {
  return <p>RunsPage</p>;
}
