// The text of an option: invisible characters by name, and text between backticks as code.
import type { JSX } from 'preact';
import { nameInvisible } from '../../../src/kernel/visible-text.js';

export function OptionLabel({ text }: { readonly text: string }): JSX.Element {
  const parts = nameInvisible(text).split(/`([^`\n]+)`/);
  return <>{parts.map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>;
}
