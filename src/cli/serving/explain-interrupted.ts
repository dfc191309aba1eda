// Describes the work that stopping the server interrupted, and the settings that would have kept it.
import type { Settings } from '../../settings/settings.js';
import type { Interrupted } from '../../orchestrator/orchestrator-settings.js';

// Returns null if nothing was interrupted.
export function explainInterrupted({ turns, queued }: Interrupted, recovery: Settings['recovery']): string | null {
  if (turns === 0 && queued === 0) return null;
  const parts = [
    ...(turns > 0 ? [count(turns, 'running turn')] : []),
    ...(queued > 0 ? [count(queued, 'queued run')] : []),
  ];
  const outcomes = [
    ...(queued > 0
      ? [
          recovery.queued === 'requeue'
            ? 'Queued runs stay queued.'
            : 'Set recovery.queued to "requeue" in config.json to keep queued runs.',
        ]
      : []),
    ...(turns > 0
      ? [
          recovery.running === 'retry'
            ? 'New runs repeat the interrupted ones at the next start.'
            : 'Set recovery.running to "retry" in config.json to repeat interrupted runs.',
        ]
      : []),
  ];
  return [`Interrupted ${parts.join(' and ')}.`, ...outcomes].join(' ');
}

function count(number: number, name: string): string {
  return `${number} ${name}${number === 1 ? '' : 's'}`;
}
