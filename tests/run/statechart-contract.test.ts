// The chart exists three times: as a table in the requirements (repeated here), as data in contract/, and as the typed
// table that the code interprets. All three must be equal.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { RequestErrorCode, RunErrorCode, StickyErrorCode } from '../../src/contract/error-codes.js';
import { FCMP_TYPES } from '../../src/fcmp/event.js';
import { fcmpSchema, raspSchema } from '../../src/contract/schemas.js';
import { GUARDS, type GuardFacts } from '../../src/run/guards.js';
import {
  CHART,
  EVENTS,
  INITIAL_STATE,
  isTerminal,
  STATES,
  step,
  TERMINAL_STATES,
  type Edge,
  type GuardName,
  type RunEvent,
  type RunState,
} from '../../src/run/statechart.js';
import { STICKY_CHART, STICKY_EDGES } from '../../src/run/waiting/sticky-extension.js';

interface ErrorEntry {
  readonly kind: string;
  readonly http_status: number | null;
  readonly retryable: boolean;
  readonly meaning: string;
  readonly message?: string;
  readonly messages?: Readonly<Record<string, string>>;
  readonly hint?: string;
  readonly hints?: Readonly<Record<string, string>>;
}

interface ChartFile {
  readonly initial: string;
  readonly states: string[];
  readonly terminal: string[];
  readonly events: string[];
  readonly guards: Record<string, string>;
  readonly edges: Edge[];
}

interface StickyFile {
  readonly guards: Record<string, string>;
  readonly edges: Edge[];
  readonly errors: Record<string, ErrorEntry>;
}

interface SchemaFile {
  readonly $defs: { readonly state: { enum: string[] }; readonly trigger: { enum: string[] } };
}

const readText = (name: string) => readFileSync(new URL(`../../contract/${name}`, import.meta.url), 'utf8');
const readJson = <T>(name: string) => JSON.parse(readText(name)) as T;

const contract = readJson<ChartFile>('run.statechart.json');
const sticky = readJson<StickyFile>('sticky.json');
const { $comment: _comment, ...errors } = readJson<Record<string, ErrorEntry>>('errors.json');

// The table of the requirements.
const REQUIRED = `
T01 | queued       | turn.started                    |                          | running
T02 | running      | turn.needs_input                | pending and handle       | waiting_user
T03 | waiting_user | interaction.reply.accepted      |                          | queued
T04 | waiting_user | interaction.auto_decide.timeout | reply not required       | queued
T05 | running      | turn.succeeded                  |                          | succeeded
T06 | running      | turn.failed                     |                          | failed
T07 | queued       | run.canceled                    |                          | canceled
T08 | running      | run.canceled                    |                          | canceled
T09 | waiting_user | run.canceled                    |                          | canceled
T10 | waiting_user | restart.preserve_waiting        | pending and handle       | waiting_user
T11 | waiting_user | restart.reconcile_failed        | not (pending and handle) | failed
T12 | queued       | restart.reconcile_failed        |                          | failed
T13 | running      | restart.reconcile_failed        |                          | failed
`;

const GUARD_WORDS: Readonly<Record<string, string>> = {
  'pending and handle': 'pending_and_handle',
  'not (pending and handle)': 'not_pending_and_handle',
  'reply not required': 'reply_not_required',
};

// Each guard written again from the text of the requirements, for every combination of the facts it names.
const GUARD_HOLDS: Readonly<Record<string, (facts: GuardFacts) => boolean>> = {
  // 004-05, 004-06: both are needed.
  pending_and_handle: ({ pending, handle }) => [pending, handle].every(Boolean),
  // 001-05: pending or handle invalid.
  not_pending_and_handle: ({ pending, handle }) => [pending, handle].some((valid) => !valid),
  // 004-04: impossible while interactive_require_user_reply=true.
  reply_not_required: ({ requireUserReply }) => requireUserReply === false,
  // D1: the run waits on a resident process.
  sticky: ({ sticky: resident }) => resident === true,
};

const BOOLEANS = [false, true] as const;
const ALL_FACTS: readonly GuardFacts[] = BOOLEANS.flatMap((pending) =>
  BOOLEANS.flatMap((handle) =>
    BOOLEANS.flatMap((requireUserReply) => BOOLEANS.map((sticky) => ({ pending, handle, requireUserReply, sticky }))),
  ),
);
const ALL_PAIRS: readonly (readonly [RunState, RunEvent])[] = STATES.flatMap((state) =>
  EVENTS.map((event) => [state, event] as const),
);

const sorted = (names: Iterable<string>) => [...names].toSorted();
const edgeById = (edges: readonly Edge[], id: string) => edges.find((edge) => edge.id === id);
const legalPairs = (chart: readonly Edge[]) =>
  ALL_PAIRS.filter(([state, event]) => ALL_FACTS.some((facts) => step(state, event, facts, chart).legal));

function requiredEdges(): object[] {
  return REQUIRED.trim()
    .split('\n')
    .map((line) => {
      const [id, from, on, words = '', to] = line.split('|').map((cell) => cell.trim());
      return { id, from, on, guard: words === '' ? undefined : (GUARD_WORDS[words] ?? words), to };
    });
}

describe('the chart as data and as code', () => {
  test('the contract has the thirteen edges of the requirements, line by line', () => {
    expect(contract.edges.map(({ id, from, on, guard, to }) => ({ id, from, on, guard, to }))).toEqual(requiredEdges());
  });

  test('every edge of the contract is in the code with the same id, states, event, guard and FCMP events', () => {
    for (const edge of contract.edges) expect(edgeById(CHART, edge.id), edge.id).toEqual(edge);
  });

  test('every edge of the code is in the contract with the same id, states, event, guard and FCMP events', () => {
    for (const edge of CHART) expect(edgeById(contract.edges, edge.id), edge.id).toEqual(edge);
    expect(CHART).toHaveLength(contract.edges.length);
  });

  test('contract and code name the same states, events, terminals, initial state and guards', () => {
    expect(contract.states).toEqual(STATES);
    expect(contract.events).toEqual(EVENTS);
    expect(contract.terminal).toEqual(TERMINAL_STATES);
    expect(contract.initial).toBe(INITIAL_STATE);
    expect(sorted([...Object.keys(contract.guards), ...Object.keys(sticky.guards)])).toEqual(
      sorted(Object.keys(GUARDS)),
    );
  });

  test('the sticky extension is the same in contract and code, both ways', () => {
    expect(STICKY_EDGES).toEqual(sticky.edges);
    expect(sticky.edges).toEqual(STICKY_EDGES);
    expect(STICKY_CHART).toEqual([...contract.edges, ...sticky.edges]);
  });

  test('every guard that an edge names is declared beside it, and every declared guard is used', () => {
    const used = (edges: readonly Edge[]) => sorted(new Set(edges.flatMap((edge) => edge.guard ?? [])));
    expect(used(contract.edges)).toEqual(sorted(Object.keys(contract.guards)));
    expect(used(sticky.edges)).toEqual(sorted(Object.keys(sticky.guards)));
  });

  test('every FCMP event that an edge promises is a type of the FCMP schema', () => {
    for (const edge of STICKY_CHART) for (const type of edge.fcmp) expect(FCMP_TYPES).toContain(type);
  });

  test('the state and trigger enums of the RASP and FCMP schemas are those of the chart', () => {
    for (const name of ['rasp.schema.json', 'fcmp.schema.json']) {
      const { $defs } = readJson<SchemaFile>(name);
      expect($defs.state.enum, name).toEqual(contract.states);
      expect($defs.trigger.enum, name).toEqual(contract.events);
    }
  });

  test('the schemas that the code checks against are those of the contract', () => {
    expect(raspSchema).toEqual(readJson('rasp.schema.json'));
    expect(fcmpSchema).toEqual(readJson('fcmp.schema.json'));
  });
});

describe('the shape of the chart', () => {
  test('there are exactly six states', () => {
    expect(sorted(STATES)).toEqual(sorted(['queued', 'running', 'waiting_user', 'succeeded', 'failed', 'canceled']));
  });

  test('there are exactly nine events', () => {
    expect(sorted(EVENTS)).toEqual(
      sorted([
        'turn.started',
        'turn.needs_input',
        'interaction.reply.accepted',
        'interaction.auto_decide.timeout',
        'turn.succeeded',
        'turn.failed',
        'run.canceled',
        'restart.preserve_waiting',
        'restart.reconcile_failed',
      ]),
    );
  });

  test('of the 54 pairs of state and event exactly the thirteen of the table are legal', () => {
    expect(ALL_PAIRS).toHaveLength(54);
    const legal = legalPairs(CHART);
    expect(legal).toHaveLength(13);
    expect(sorted(legal.map(String))).toEqual(sorted(contract.edges.map((edge) => String([edge.from, edge.on]))));
  });

  test('each state, event and guard has exactly one target, and each edge an id of its own', () => {
    const keys = STICKY_CHART.map((edge) => `${edge.from} ${edge.on} ${edge.guard ?? ''}`);
    expect(new Set(keys).size).toBe(keys.length);
    expect(new Set(STICKY_CHART.map((edge) => edge.id)).size).toBe(STICKY_CHART.length);
  });

  test('every state can be reached from the initial one', () => {
    const reached = new Set<RunState>([INITIAL_STATE]);
    for (const state of reached) for (const edge of CHART) if (edge.from === state) reached.add(edge.to);
    expect(sorted(reached)).toEqual(sorted(STATES));
  });

  test('no event leads out of a terminal state, whatever the facts', () => {
    expect(sorted(TERMINAL_STATES)).toEqual(sorted(['succeeded', 'failed', 'canceled']));
    for (const chart of [CHART, STICKY_CHART]) {
      for (const state of TERMINAL_STATES) {
        for (const event of EVENTS)
          for (const facts of ALL_FACTS)
            expect(step(state, event, facts, chart)).toEqual({
              legal: false,
              code: 'ILLEGAL_TRANSITION',
              state,
              event,
            });
      }
    }
  });

  test('a state is terminal exactly when nothing leads out of it', () => {
    for (const state of STATES) expect(isTerminal(state), state).toBe(CHART.every((edge) => edge.from !== state));
  });

  test('a normal interactive run goes from queued over waiting and back to a terminal state', () => {
    const facts: GuardFacts = { pending: true, handle: true, requireUserReply: true, sticky: false };
    const events: RunEvent[] = [
      'turn.started',
      'turn.needs_input',
      'interaction.reply.accepted',
      'turn.started',
      'turn.succeeded',
    ];
    const path: RunState[] = [INITIAL_STATE];
    for (const event of events) {
      const taken = step(path.at(-1) ?? INITIAL_STATE, event, facts);
      expect(taken.legal, event).toBe(true);
      if (taken.legal) path.push(taken.edge.to);
    }
    expect(path).toEqual(['queued', 'running', 'waiting_user', 'queued', 'running', 'succeeded']);
  });
});

describe('guards', () => {
  test('each guard holds for exactly the facts for which the requirements say so', () => {
    expect(ALL_FACTS).toHaveLength(16);
    for (const [name, holds] of Object.entries(GUARD_HOLDS)) {
      for (const facts of ALL_FACTS)
        expect(GUARDS[name as GuardName](facts), `${name} ${JSON.stringify(facts)}`).toBe(holds(facts));
    }
    expect(sorted(Object.keys(GUARD_HOLDS))).toEqual(sorted(Object.keys(GUARDS)));
  });

  test('a failing guard is named in the refusal, and every other pair has its own code', () => {
    for (const [state, event] of ALL_PAIRS) {
      const edge = contract.edges.find((candidate) => candidate.from === state && candidate.on === event);
      for (const facts of ALL_FACTS) {
        const taken = step(state, event, facts);
        if (!edge) expect(taken).toEqual({ legal: false, code: 'ILLEGAL_TRANSITION', state, event });
        else if (edge.guard && !GUARD_HOLDS[edge.guard]?.(facts))
          expect(taken).toEqual({ legal: false, code: 'GUARD_REFUSED', state, event, guard: edge.guard });
        else expect(taken).toEqual({ legal: true, edge });
      }
    }
  });

  test('a turn that asks can only wait when both the question and the handle are stored', () => {
    for (const facts of ALL_FACTS)
      expect(step('running', 'turn.needs_input', facts).legal).toBe(facts.pending && facts.handle);
  });

  test('a timeout decides only where the user is not required to reply', () => {
    for (const facts of ALL_FACTS)
      expect(step('waiting_user', 'interaction.auto_decide.timeout', facts).legal).toBe(!facts.requireUserReply);
  });

  test('after a restart a waiting run stays if its question and handle exist; otherwise it fails', () => {
    for (const facts of ALL_FACTS) {
      const stays = step('waiting_user', 'restart.preserve_waiting', facts);
      const fails = step('waiting_user', 'restart.reconcile_failed', facts);
      expect(stays.legal).toBe(facts.pending && facts.handle);
      expect(fails.legal).toBe(!stays.legal);
      if (stays.legal) expect(stays.edge.to).toBe('waiting_user');
      if (fails.legal) expect(fails.edge.to).toBe('failed');
    }
  });

  test('a reply leads back to the queue whatever the facts, and so does the automatic decision', () => {
    for (const facts of ALL_FACTS) {
      const replied = step('waiting_user', 'interaction.reply.accepted', facts);
      const decided = step('waiting_user', 'interaction.auto_decide.timeout', { ...facts, requireUserReply: false });
      expect(replied.legal && replied.edge.to).toBe('queued');
      expect(decided.legal && decided.edge.to).toBe('queued');
    }
  });
});

describe('the sticky extension', () => {
  test('the sticky edge does not exist in the default chart, whatever the facts', () => {
    for (const facts of ALL_FACTS)
      expect(step('waiting_user', 'turn.failed', facts)).toMatchObject({ legal: false, code: 'ILLEGAL_TRANSITION' });
  });

  test('with the sticky chart a waiting turn can fail only while the run waits on a resident process', () => {
    for (const facts of ALL_FACTS) {
      const taken = step('waiting_user', 'turn.failed', facts, STICKY_CHART);
      if (facts.sticky) expect(taken).toEqual({ legal: true, edge: sticky.edges[0] });
      else
        expect(taken).toEqual({
          legal: false,
          code: 'GUARD_REFUSED',
          state: 'waiting_user',
          event: 'turn.failed',
          guard: 'sticky',
        });
    }
  });

  test('the sticky chart changes no other pair of state and event', () => {
    for (const [state, event] of ALL_PAIRS) {
      if (state === 'waiting_user' && event === 'turn.failed') continue;
      for (const facts of ALL_FACTS) expect(step(state, event, facts, STICKY_CHART)).toEqual(step(state, event, facts));
    }
  });

  test('the sticky extension is one edge, one guard and two error codes', () => {
    expect(sticky.edges.map(({ from, on, guard, to }) => ({ from, on, guard, to }))).toEqual([
      { from: 'waiting_user', on: 'turn.failed', guard: 'sticky', to: 'failed' },
    ]);
    expect(Object.keys(sticky.guards)).toEqual(['sticky']);
    expect(sorted(Object.keys(sticky.errors))).toEqual(['INTERACTION_PROCESS_LOST', 'INTERACTION_WAIT_TIMEOUT']);
  });

  test('nothing of the sticky extension appears in the contract that is in force by default', () => {
    for (const name of ['run.statechart.json', 'rasp.schema.json', 'fcmp.schema.json', 'errors.json']) {
      expect(readText(name), name).not.toMatch(
        /sticky|resident|process_binding|wait_deadline|watchdog|profile_json|INTERACTION_WAIT_TIMEOUT/i,
      );
      expect(readText(name), name).not.toMatch(/INTERACTION_PROCESS_LOST/i);
    }
  });
});

describe('error codes', () => {
  // Lists that the compiler compares with the generated types, and the tests with the contract.
  const RUN_CODES = {
    SESSION_RESUME_FAILED: true,
    INTERACTIVE_MAX_ATTEMPT_EXCEEDED: true,
    ORCHESTRATOR_RESTART_INTERRUPTED: true,
    WORKING_FOLDER_UNUSABLE: true,
    ENGINE_SETTINGS_INVALID: true,
    ENGINE_NOT_FOUND: true,
    ENGINE_AUTH_REQUIRED: true,
    ENGINE_TURN_FAILED: true,
    ENGINE_RATE_LIMITED: true,
    ENGINE_SERVICE_FAILED: true,
    ENGINE_REQUEST_REJECTED: true,
    ENGINE_LIMIT_REACHED: true,
    ENGINE_EXITED: true,
    TURN_TIMEOUT: true,
    ENGINE_IDLE_TIMEOUT: true,
    TOOL_CALL_TIMEOUT: true,
    OUTPUT_INVALID: true,
    COMPLETION_UNKNOWN: true,
    AUTO_MODE_CANNOT_ASK: true,
    CANCELED_BY_USER: true,
    DISK_FULL: true,
    INTERNAL: true,
  } satisfies Record<RunErrorCode, true>;
  const STICKY_CODES = { INTERACTION_WAIT_TIMEOUT: true, INTERACTION_PROCESS_LOST: true } satisfies Record<
    StickyErrorCode,
    true
  >;
  // The two refusals of the chart itself.
  const CHART_REFUSALS = ['ILLEGAL_TRANSITION', 'GUARD_REFUSED'] satisfies RequestErrorCode[];

  const every = Object.entries({ ...errors, ...sticky.errors });
  const codesOf = (kind: string) => Object.keys(errors).filter((code) => errors[code]?.kind === kind);

  test('every run error of the design is in the contract, and no other', () => {
    expect(sorted(codesOf('run'))).toEqual(sorted(Object.keys(RUN_CODES)));
  });

  test('the codes of the single resumable paradigm are kept', () => {
    for (const code of [
      'SESSION_RESUME_FAILED',
      'INTERACTIVE_MAX_ATTEMPT_EXCEEDED',
      'ORCHESTRATOR_RESTART_INTERRUPTED',
    ])
      expect(errors[code], code).toMatchObject({ kind: 'run' });
  });

  test('sticky codes are run errors of the extension only', () => {
    expect(sorted(Object.keys(sticky.errors))).toEqual(sorted(Object.keys(STICKY_CODES)));
    for (const [code, entry] of Object.entries(sticky.errors)) {
      expect(entry.kind, code).toBe('run');
      expect(errors, code).not.toHaveProperty(code);
    }
  });

  test('the refusals of the chart are request errors of the contract', () => {
    for (const code of CHART_REFUSALS) expect(errors[code], code).toMatchObject({ kind: 'request', http_status: 409 });
  });

  test('every code has a kind, a retryable flag and a meaning that is a sentence', () => {
    for (const [code, entry] of every) {
      expect(code).toMatch(/^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/);
      const { message: _message, messages: _messages, hint: _hint, hints: _hints, ...rest } = entry;
      expect(Object.keys(rest).toSorted(), code).toEqual(['http_status', 'kind', 'meaning', 'retryable']);
      expect(['run', 'request', 'client', 'diagnostic'], code).toContain(entry.kind);
      expect(entry.retryable, code).toBeTypeOf('boolean');
      expect(entry.meaning, code).toMatch(/^[A-Z<].*\.$/);
    }
  });

  test('a message is a sentence with named values, and a hint is a sentence without values', () => {
    for (const [code, { message, messages = {}, hint = '', hints = {} }] of every) {
      for (const text of [...(message === undefined ? [] : [message]), ...Object.values(messages)]) {
        expect(text, code).toMatch(
          /^([A-Z{"`]|(cwd|output_schema|runtime_options|trusted_proxies|public_url|parley|parley\.db)\b|--[a-z])/,
        );
        expect(text, code).toMatch(/[.…?"`})]$|(: |\(|then )parley [^.]+$|: \{[a-z_]+\}$|::text\)$|rand -hex 32\)$/);
        expect(text.replaceAll(/\{[a-z_]+\}/g, ''), code).not.toMatch(/[{}]/);
      }
      for (const text of [hint, ...Object.values(hints)]) expect(text, code).toMatch(/^([^{}]+\.)?$/);
      expect(Object.keys(messages), code).toEqual(expect.arrayContaining(Object.keys(hints)));
    }
  });

  test('request errors have an error status; run errors and diagnostics have none, except INTERNAL', () => {
    for (const [code, entry] of every) {
      if (entry.kind === 'request')
        expect(entry.http_status, code).toSatisfy(
          (status: number | null) => status !== null && status >= 400 && status < 600,
        );
      else expect(entry.http_status, code).toBe(code === 'INTERNAL' ? 500 : null);
    }
  });
});
