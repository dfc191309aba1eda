// The chart of a run, and the one function that reads it. Mirrors contract/run.statechart.json line by line.
// Pure: it says where an event leads; only the orchestrator writes the answer down.
import type { GuardName, RunEvent, RunState } from '../contract/chart-names.js';
import type { FcmpData } from '../contract/fcmp-data.js';
import { GUARDS, type GuardFacts } from './guards.js';

export type { GuardName, RunEvent, RunState };

export interface Edge {
  readonly id: string;
  readonly from: RunState;
  readonly on: RunEvent;
  readonly guard?: GuardName;
  readonly to: RunState;
  readonly fcmp: readonly (keyof FcmpData)[];
  // The extension of the contract that adds it.
  readonly extension?: string;
}

export const STATES = [
  'queued',
  'running',
  'waiting_user',
  'succeeded',
  'failed',
  'canceled',
] as const satisfies readonly RunState[];
export const TERMINAL_STATES = ['succeeded', 'failed', 'canceled'] as const satisfies readonly RunState[];
export const INITIAL_STATE = 'queued' satisfies RunState;

export const EVENTS = [
  'turn.started',
  'turn.needs_input',
  'interaction.reply.accepted',
  'interaction.auto_decide.timeout',
  'turn.succeeded',
  'turn.failed',
  'run.canceled',
  'restart.preserve_waiting',
  'restart.reconcile_failed',
] as const satisfies readonly RunEvent[];

// What a person sees when an edge is taken, in this order.
const changed = ['conversation.state.changed'] as const;
const asked = ['user.input.required', ...changed] as const;
const replied = ['interaction.reply.accepted', ...changed] as const;
const decided = ['interaction.auto_decide.timeout', ...changed] as const;
const completed = ['conversation.completed', ...changed] as const;
const failed = ['conversation.failed', ...changed] as const;
const canceled = ['conversation.canceled', ...changed] as const;
const none = [] as const;

export const CHART = [
  { id: 'T01', from: 'queued', on: 'turn.started', to: 'running', fcmp: changed },
  { id: 'T02', from: 'running', on: 'turn.needs_input', guard: 'pending_and_handle', to: 'waiting_user', fcmp: asked },
  { id: 'T03', from: 'waiting_user', on: 'interaction.reply.accepted', to: 'queued', fcmp: replied },
  {
    id: 'T04',
    from: 'waiting_user',
    on: 'interaction.auto_decide.timeout',
    guard: 'reply_not_required',
    to: 'queued',
    fcmp: decided,
  },
  { id: 'T05', from: 'running', on: 'turn.succeeded', to: 'succeeded', fcmp: completed },
  { id: 'T06', from: 'running', on: 'turn.failed', to: 'failed', fcmp: failed },
  { id: 'T07', from: 'queued', on: 'run.canceled', to: 'canceled', fcmp: canceled },
  { id: 'T08', from: 'running', on: 'run.canceled', to: 'canceled', fcmp: canceled },
  { id: 'T09', from: 'waiting_user', on: 'run.canceled', to: 'canceled', fcmp: canceled },
  {
    id: 'T10',
    from: 'waiting_user',
    on: 'restart.preserve_waiting',
    guard: 'pending_and_handle',
    to: 'waiting_user',
    fcmp: none,
  },
  {
    id: 'T11',
    from: 'waiting_user',
    on: 'restart.reconcile_failed',
    guard: 'not_pending_and_handle',
    to: 'failed',
    fcmp: failed,
  },
  { id: 'T12', from: 'queued', on: 'restart.reconcile_failed', to: 'failed', fcmp: failed },
  { id: 'T13', from: 'running', on: 'restart.reconcile_failed', to: 'failed', fcmp: failed },
] as const satisfies readonly Edge[];

export type Step =
  | { readonly legal: true; readonly edge: Edge }
  | {
      readonly legal: false;
      readonly code: 'ILLEGAL_TRANSITION' | 'GUARD_REFUSED';
      readonly state: RunState;
      readonly event: RunEvent;
      readonly guard?: GuardName;
    };

export function step(state: RunState, event: RunEvent, facts: GuardFacts, chart: readonly Edge[] = CHART): Step {
  const edge = chart.find((candidate) => candidate.from === state && candidate.on === event);
  if (!edge) return { legal: false, code: 'ILLEGAL_TRANSITION', state, event };
  if (edge.guard && !GUARDS[edge.guard](facts))
    return { legal: false, code: 'GUARD_REFUSED', state, event, guard: edge.guard };
  return { legal: true, edge };
}

export function isTerminal(state: RunState): boolean {
  return (TERMINAL_STATES as readonly RunState[]).includes(state);
}
