// The events that webhooks can receive: the states in which a run waits or has ended, and `silent` for a turn that
// prints nothing for a long time.
import { TERMINAL_STATES, type RunState } from './statechart.js';

export type HookEvent = RunState | 'silent';

export const HOOK_EVENTS: readonly HookEvent[] = ['waiting_user', ...TERMINAL_STATES, 'silent'];
