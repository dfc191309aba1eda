// Not built yet.
import type { JSX } from 'preact';

export function EnginesPage(): JSX.Element {
  return <p>EnginesPage</p>;
}
