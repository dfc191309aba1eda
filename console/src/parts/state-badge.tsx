// The state of a run: a colour, a sign and a word.
import type { JSX } from 'preact';
import { t } from '../language/language.js';
import type { RunView } from '../../../src/client/index.js';

type State = RunView['status'];

const SIGNS: Readonly<Record<State, string>> = {
  queued: '○',
  running: '▶',
  waiting_user: '?',
  succeeded: '✓',
  failed: '✗',
  canceled: '–',
};

export const STATE_NAMES = Object.keys(SIGNS) as readonly State[];

export function StateBadge({ run }: { readonly run: Pick<RunView, 'status' | 'recovering'> }): JSX.Element {
  const { status: state, recovering } = run;
  return (
    <span class={`state ${state}`}>
      <span aria-hidden="true">{SIGNS[state]}</span>{' '}
      {recovering && state === 'running' ? t.recovering : t.states[state]}
    </span>
  );
}
