// Not built yet.
import type { JSX } from 'preact';

export function RunPage({ id }: { readonly id: string }): JSX.Element {
  return <p>RunPage {id}</p>;
}
