// Two models that share no code with the chart of src/: an interpreter of the contract's JSON, and an xstate machine
// written by hand from the requirements. step() must agree with both, event by event.
import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { initialTransition, setup, transition } from 'xstate';
import type { GuardFacts } from '../../src/run/guards.js';
import { CHART, EVENTS, step, type RunEvent, type RunState } from '../../src/run/statechart.js';

// --- the contract as a model: only its JSON and the meanings of its guard names ---

interface ContractEdge {
  readonly id: string;
  readonly from: string;
  readonly on: string;
  readonly guard?: string;
  readonly to: string;
}

const contract = JSON.parse(readFileSync(new URL('../../contract/run.statechart.json', import.meta.url), 'utf8')) as {
  readonly initial: string;
  readonly events: string[];
  readonly edges: ContractEdge[];
};

function holds(guard: string | undefined, facts: GuardFacts): boolean {
  if (guard === undefined) return true;
  if (guard === 'pending_and_handle') return facts.pending && facts.handle;
  if (guard === 'not_pending_and_handle') return !facts.pending || !facts.handle;
  if (guard === 'reply_not_required') return !facts.requireUserReply;
  throw new Error(`the contract has a guard that this model does not know: ${guard}`);
}

function interpret(state: string, event: string, facts: GuardFacts): ContractEdge | undefined {
  const fitting = contract.edges.filter((edge) => edge.from === state && edge.on === event && holds(edge.guard, facts));
  if (fitting.length > 1) throw new Error(`${state} ${event} leads to several states`);
  return fitting[0];
}

// --- the requirements as a model: every facts-dependent edge asks the facts that came with its event ---

type ModelEvent = { type: RunEvent; facts: GuardFacts };

const machine = setup({
  types: { events: {} as ModelEvent },
  guards: {
    pendingAndHandle: ({ event }) => event.facts.pending && event.facts.handle,
    notPendingAndHandle: ({ event }) => !(event.facts.pending && event.facts.handle),
    replyNotRequired: ({ event }) => !event.facts.requireUserReply,
  },
}).createMachine({
  initial: 'queued',
  states: {
    queued: {
      on: {
        'turn.started': 'running',
        'run.canceled': 'canceled',
        'restart.reconcile_failed': 'failed',
      },
    },
    running: {
      on: {
        'turn.needs_input': { guard: 'pendingAndHandle', target: 'waiting_user' },
        'turn.succeeded': 'succeeded',
        'turn.failed': 'failed',
        'run.canceled': 'canceled',
        'restart.reconcile_failed': 'failed',
      },
    },
    waiting_user: {
      on: {
        'interaction.reply.accepted': 'queued',
        'interaction.auto_decide.timeout': { guard: 'replyNotRequired', target: 'queued' },
        'run.canceled': 'canceled',
        'restart.preserve_waiting': { guard: 'pendingAndHandle', target: 'waiting_user' },
        'restart.reconcile_failed': { guard: 'notPendingAndHandle', target: 'failed' },
      },
    },
    succeeded: { type: 'final' },
    failed: { type: 'final' },
    canceled: { type: 'final' },
  },
});

// --- facts ---

const BOOLEANS = [false, true] as const;
const CONSTANT_FACTS: readonly GuardFacts[] = BOOLEANS.flatMap((pending) =>
  BOOLEANS.flatMap((handle) =>
    BOOLEANS.map((requireUserReply) => ({ pending, handle, requireUserReply, sticky: false })),
  ),
);
const ALL_HOLD: GuardFacts = { pending: true, handle: true, requireUserReply: false, sticky: true };
const NONE_HOLDS: GuardFacts = { pending: false, handle: false, requireUserReply: true, sticky: false };

// Facts by the position of the event in its sequence.
const FACT_SETTINGS: readonly ((position: number) => GuardFacts)[] = [
  ...CONSTANT_FACTS.map((facts) => () => facts),
  (position) => (position % 2 === 0 ? ALL_HOLD : NONE_HOLDS),
  (position) => (position % 2 === 0 ? NONE_HOLDS : ALL_HOLD),
  (position) => (position < 2 ? ALL_HOLD : NONE_HOLDS),
  (position) => CONSTANT_FACTS[position % CONSTANT_FACTS.length] ?? ALL_HOLD,
];

const advance = (state: RunState, event: RunEvent, facts: GuardFacts): RunState => {
  const taken = step(state, event, facts);
  return taken.legal ? taken.edge.to : state;
};

describe('every bounded sequence', () => {
  const LENGTH = 5;

  test('every sequence of up to five events ends in the same state in the contract and in the code', () => {
    expect(EVENTS).toHaveLength(9);
    const disagreements: string[] = [];
    const edgesTaken = new Set<string>();
    for (const factsAt of FACT_SETTINGS) {
      let sequences = 0;
      // Sequences with a common prefix share its walk; each longer one is one more step of both models.
      const walk = (position: number, inContract: string, inCode: string, events: readonly string[]) => {
        if (position === LENGTH) {
          sequences += 1;
          return;
        }
        const facts = factsAt(position);
        for (const event of EVENTS) {
          const edge = interpret(inContract, event, facts);
          if (edge) edgesTaken.add(edge.id);
          const nextInContract = edge?.to ?? inContract;
          const nextInCode = advance(inCode as RunState, event, facts);
          if (nextInContract !== nextInCode && disagreements.length < 5)
            disagreements.push(`${[...events, event].join(' ')}: ${nextInContract} or ${nextInCode}?`);
          walk(position + 1, nextInContract, nextInCode, position < LENGTH - 1 ? [...events, event] : events);
        }
      };
      walk(0, contract.initial, 'queued', []);
      expect(sequences).toBe(9 ** LENGTH);
    }
    expect(disagreements).toEqual([]);
    // The comparison means something only if every edge was walked.
    expect([...edgesTaken].toSorted()).toEqual(contract.edges.map((edge) => edge.id));
  });

  test('contract and code take the same edge or refuse alike, also where the state stays the same', () => {
    for (const state of ['queued', 'running', 'waiting_user', 'succeeded', 'failed', 'canceled'] as const) {
      for (const event of EVENTS) {
        for (const facts of [...CONSTANT_FACTS, ALL_HOLD, NONE_HOLDS]) {
          const taken = step(state, event, facts);
          expect(taken.legal ? taken.edge.id : null, `${state} ${event} ${JSON.stringify(facts)}`).toBe(
            interpret(state, event, facts)?.id ?? null,
          );
        }
      }
    }
  });
});

describe('random sequences', () => {
  const facts = fc.record({
    pending: fc.boolean(),
    handle: fc.boolean(),
    requireUserReply: fc.boolean(),
    sticky: fc.boolean(),
  });
  // Ends are rarer than in a uniform choice, so that walks are long.
  const event = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.constantFrom<RunEvent>(
        'turn.started',
        'turn.needs_input',
        'interaction.reply.accepted',
        'interaction.auto_decide.timeout',
      ),
    },
    { weight: 1, arbitrary: fc.constantFrom<RunEvent>(...EVENTS) },
  );

  test('an independent xstate machine agrees with the code on three thousand random sequences', () => {
    const edgesTaken = new Set<string>();
    const [start] = initialTransition(machine);
    fc.assert(
      fc.property(fc.array(fc.record({ type: event, facts }), { minLength: 1, maxLength: 24 }), (events) => {
        let snapshot = start;
        let state: RunState = 'queued';
        for (const each of events) {
          const taken = step(state, each.type, each.facts);
          expect(taken.legal, `${state} ${each.type}`).toBe(snapshot.can(each));
          if (taken.legal) edgesTaken.add(taken.edge.id);
          state = taken.legal ? taken.edge.to : state;
          [snapshot] = transition(machine, snapshot, each);
          expect(state).toBe(snapshot.value);
        }
      }),
      { seed: 20_260_401, numRuns: 3000 },
    );
    expect([...edgesTaken].toSorted()).toEqual(CHART.map((edge) => edge.id));
  });
});
