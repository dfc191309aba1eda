// The state of a run: a colour, a sign and a word.
import type { JSX } from 'preact';
import type { RunView } from '../../../src/client/index.js';

type State = RunView['status'];

const WORDS: Readonly<Record<State, readonly [sign: string, word: string]>> = {
  queued: ['○', 'queued'],
  running: ['▶', 'running'],
  waiting_user: ['?', 'waiting for you'],
  succeeded: ['✓', 'succeeded'],
  failed: ['✗', 'failed'],
  canceled: ['–', 'canceled'],
};

export const STATE_NAMES = Object.keys(WORDS) as readonly State[];

export function stateWord(state: State): string {
  return WORDS[state][1];
}

export function StateBadge({ state }: { readonly state: State }): JSX.Element {
  const [sign, word] = WORDS[state];
  return (
    <span class={`state ${state}`}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}
