// Describes the work that stopping the server interrupted, and the settings that would have kept it.
import type { Settings } from '../../settings/settings.js';
import type { Interrupted } from '../../orchestrator/orchestrator-settings.js';
import type { Texts } from '../language/en.js';

// Returns null if nothing was interrupted.
export function explainInterrupted(
  { turns, queued }: Interrupted,
  recovery: Settings['recovery'],
  t: Texts['stop'],
): string | null {
  if (turns === 0 && queued === 0) return null;
  const outcomes = [
    ...(queued > 0 ? [recovery.queued === 'requeue' ? t.queuedStay : t.keepQueued] : []),
    ...(turns > 0 ? [recovery.running === 'retry' ? t.repeated : t.repeat] : []),
  ];
  return [t.interrupted(nameWork({ turns, queued }, t)), ...outcomes].join(t.between);
}

function nameWork({ turns, queued }: Interrupted, t: Texts['stop']): string {
  if (queued === 0) return t.turns(turns);
  return turns === 0 ? t.queued(queued) : t.both(t.turns(turns), t.queued(queued));
}
