// The opt-in extension of the contract for sticky sessions (setting sessions.sticky): mirrors contract/sticky.json.
import { STICKY_ERRORS } from '../../contract/error-codes.js';
import { CHART, type Edge } from '../statechart.js';

export { STICKY_ERRORS };

export const STICKY_EDGES = [
  {
    id: 'S01',
    from: 'waiting_user',
    on: 'turn.failed',
    guard: 'sticky',
    to: 'failed',
    fcmp: ['conversation.failed', 'conversation.state.changed'],
    extension: 'sticky',
  },
] as const satisfies readonly Edge[];

export const STICKY_CHART: readonly Edge[] = [...CHART, ...STICKY_EDGES];
