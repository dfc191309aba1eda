// Computes a change of state: finds the edge in the chart and builds the event that records it. Every change of state
// uses it. Pure; the caller stores the event.
import { toTimestamp } from '../kernel/clock.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import type { RaspData } from '../rasp/event.js';
import type { GuardFacts } from '../run/guards.js';
import { CHART, step, type Edge, type RunEvent, type RunState, type Step } from '../run/statechart.js';

export interface EdgeDetails extends Pick<RaspData['lifecycle.state.changed'], 'error' | 'result' | 'actor'> {
  readonly now: number;
  readonly sessionId?: string | null | undefined;
  // The chart of the run, if it is not the default one.
  readonly chart?: readonly Edge[] | undefined;
}

export type Taken =
  | { readonly legal: true; readonly edge: Edge; readonly changed: RaspDraft<'lifecycle.state.changed'> }
  | Extract<Step, { legal: false }>;

export function takeEdge(state: RunState, event: RunEvent, facts: GuardFacts, details: EdgeDetails): Taken {
  const taken = step(state, event, facts, details.chart ?? CHART);
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
