// The one way to a change of state: ask the chart, and make the event that records it. Pure; storing it is the
// caller's.
import { toTimestamp } from '../kernel/clock.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import type { RaspData } from '../rasp/event.js';
import type { GuardFacts } from '../run/guards.js';
import { CHART, step, STICKY_CHART, type Edge, type RunEvent, type RunState, type Step } from '../run/statechart.js';

export interface EdgeDetails extends Pick<RaspData['lifecycle.state.changed'], 'error' | 'result' | 'actor'> {
  readonly now: number;
  readonly sessionId?: string | null | undefined;
  // The edges of sessions.sticky count too.
  readonly sticky?: boolean | undefined;
}

export type Taken =
  | { readonly legal: true; readonly edge: Edge; readonly changed: RaspDraft<'lifecycle.state.changed'> }
  | Extract<Step, { legal: false }>;

export function takeEdge(state: RunState, event: RunEvent, facts: GuardFacts, details: EdgeDetails): Taken {
  const taken = step(state, event, facts, details.sticky ? STICKY_CHART : CHART);
  if (!taken.legal) return taken;
  const { edge } = taken;
  const { now, sessionId, error, result, actor } = details;
  const changed = draft(
    'lifecycle.state.changed',
    { from: edge.from, to: edge.to, trigger: edge.on, updated_at: toTimestamp(now), error, result, actor },
    { sessionId: sessionId ?? null },
  );
  return { legal: true, edge, changed };
}
