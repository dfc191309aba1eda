// Output that several commands share: a run as a JSON line for programs, a check as a line for people.
import { viewRun } from '../../journal/run-view.js';
import type { MadeCheck } from '../../audit/verify-run.js';
import type { InteractionRecord, RunRecord } from '../../store/store.js';
import { safeText } from '../../terminal/safe-text.js';
import { paint, type Style } from '../../terminal/style.js';
import { sayMessage } from '../language/language.js';

// Returns the line without a line end.
export function runLine(run: RunRecord, pending: InteractionRecord | null, now: number): string {
  return JSON.stringify({ type: 'run', run: viewRun(run, pending, now) });
}

export function checkLine({ name, ok, message }: MadeCheck, style: Style): string {
  const mark = ok ? paint(style, 'green', '✓') : paint(style, 'red', '✗');
  return `${mark} ${name.padEnd(12)} ${safeText(sayMessage(message))}`;
}
