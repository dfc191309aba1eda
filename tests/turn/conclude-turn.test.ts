// The drafts that are stored when a turn ends, and for every other edge of the chart: in order, and folded into the
// FCMP events that the contract promises for the edge. Payloads that lack a member are refused where they are made.
import { phrase } from '../../src/messages/phrase.js';
import { takeEdge } from '../../src/journal/take-edge.js';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ConversationFold, foldInputOfDraft, type FoldInput } from '../../src/fcmp/fold.js';
import { FCMP_VERSION, type FcmpEvent } from '../../src/fcmp/event.js';
import { explainFcmp } from '../../src/fcmp/validate.js';
import { InvariantError } from '../../src/kernel/invariant.js';
import type { Json, JsonObject } from '../../src/kernel/json.js';
import { concludeTurn } from '../../src/turn/conclude-turn.js';
import { draft, type RaspDraft } from '../../src/rasp/draft.js';
import { RASP_VERSION, type RaspData, type RaspType } from '../../src/rasp/event.js';
import { explainRasp } from '../../src/rasp/validate.js';
import type { ExecutionMode } from '../../src/run/attempt.js';
import type { TurnEvidence } from '../../src/run/evidence.js';
import { parseQuestion } from '../../src/run/interaction.js';
import type { TurnFacts } from '../../src/run/judge-completion.js';
import { CHART, step, type Edge } from '../../src/run/statechart.js';
import { STICKY_CHART } from '../../src/run/waiting/sticky-extension.js';

interface ContractEdge {
  readonly id: string;
  readonly from: string;
  readonly on: string;
  readonly to: string;
  readonly fcmp: string[];
}

const readContract = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../contract/${name}`, import.meta.url), 'utf8')) as { edges: ContractEdge[] };
const CONTRACT = [...readContract('run.statechart.json').edges, ...readContract('sticky.json').edges];

const NOW_MS = Date.UTC(2026, 3, 1, 12);
const NOW = '2026-04-01T12:00:00.000Z';
const SESSION = 'session-1';
const STREAMS = { stdout: { bytes: 10, sha256: 'aa' }, stderr: { bytes: 0, sha256: 'bb' } };
const PARSER = { profile: 'codex_ndjson', units: 2, parsed: 2, fallbacks: 0, hit_rate: 1, warnings: {} };
const QUESTION = parseQuestion({ prompt: 'Which one?', options: ['a', 'b'], default: 'a' }, 'tool');

type FactsPatch = Partial<Omit<TurnFacts, 'evidence'>> & { readonly evidence?: Partial<TurnEvidence> };

function conclude(mode: ExecutionMode, { evidence, ...rest }: FactsPatch) {
  const conclusion = concludeTurn({
    facts: {
      mode,
      attempt: 1,
      maxAttempt: 100,
      evidence: {
        sessionId: SESSION,
        success: false,
        failure: null,
        unfinished: null,
        questions: [],
        done: null,
        lastMessage: null,
        complaint: null,
        ...evidence,
      },
      exit: { code: 0, signal: null },
      endedByUs: null,
      resumedFrom: null,
      handleChecked: true,
      output: { kind: 'not_asked' },
      ...rest,
    },
    now: NOW_MS,
    interactionId: 'int_1',
    streams: STREAMS,
    parser: PARSER,
  });
  const { event, facts, before, ...details } = conclusion.transition;
  const taken = takeEdge('running', event, facts, { ...details, now: NOW_MS });
  if (!taken.legal) throw new Error(`a turn cannot end with ${event}`);
  // The closing events as they are stored, the change of state last.
  return { ...conclusion, edge: taken.edge, drafts: [...before, taken.changed] };
}

// The drafts as a reader of the journal would get them; each must be a valid event.
function store(drafts: readonly RaspDraft[]): { type: RaspType; data: JsonObject; correlation: JsonObject }[] {
  return drafts.map((each, index) => {
    const data = JSON.parse([each.json].flat().join('')) as JsonObject;
    const correlation: JsonObject = {
      ...(each.sessionId === null ? {} : { session_id: each.sessionId }),
      ...(each.interactionId === null ? {} : { interaction_id: each.interactionId }),
    };
    const event = {
      protocol_version: RASP_VERSION,
      run_id: 'run_1',
      seq: index + 1,
      ts: NOW,
      attempt_number: 1,
      source: { engine: 'codex', parser: each.parser, confidence: each.confidence },
      event: { category: each.type.split('.')[0], type: each.type },
      data,
      correlation,
      raw_ref: null,
    };
    expect(explainRasp(event), each.type).toBeNull();
    return { type: each.type, data, correlation };
  });
}

// The conversation of the drafts; each event must be valid, and name its RASP event.
function converse(drafts: readonly RaspDraft[]): FcmpEvent[] {
  store(drafts);
  const fold = new ConversationFold('run_1');
  const events = drafts.flatMap((each, index) =>
    fold.push(foldInputOfDraft(each, index + 1, NOW, 1)).map((line) => JSON.parse(line) as FcmpEvent),
  );
  for (const [index, event] of events.entries()) {
    expect(explainFcmp(event), event.type).toBeNull();
    expect(event.seq).toBe(index + 1);
  }
  return events;
}

const isDiagnostic = (each: RaspDraft) => each.type.startsWith('diagnostic.');
const typesOf = (events: readonly { type: string }[]) => events.map((event) => event.type);
const dataOf = (events: readonly FcmpEvent[], type: string) => events.find((event) => event.type === type)?.data;
const contractEdge = (id: string) => CONTRACT.find((edge) => edge.id === id);

// The conversation shows the edge of the contract: these events in this order, with the true from, to and trigger.
function checkEdge(id: string, drafts: readonly RaspDraft[]): FcmpEvent[] {
  const edge = contractEdge(id);
  const events = converse(drafts);
  expect(typesOf(events), id).toEqual(edge?.fcmp);
  if (edge?.fcmp.includes('conversation.state.changed')) {
    expect(dataOf(events, 'conversation.state.changed')).toEqual({
      from: edge.from,
      to: edge.to,
      trigger: edge.on,
      updated_at: NOW,
    });
  }
  return events;
}

interface Ending {
  readonly name: string;
  readonly facts: FactsPatch;
  readonly auto: string;
  readonly interactive: string;
  readonly result: readonly [auto: string, interactive: string];
}

const both = (edge: string, result: string) => ({ auto: edge, interactive: edge, result: [result, result] as const });

const ENDINGS: readonly Ending[] = [
  {
    name: 'a canceled turn takes the edge to canceled',
    facts: { endedByUs: 'canceled', exit: { code: null, signal: 'SIGTERM' } },
    ...both('T08', 'interrupted'),
  },
  {
    name: 'a turn that took too long takes the edge to failed',
    facts: { endedByUs: 'turn_timeout', exit: { code: null, signal: 'SIGTERM' } },
    ...both('T06', 'interrupted'),
  },
  {
    name: 'an idle turn takes the edge to failed',
    facts: { endedByUs: 'idle_timeout', exit: { code: null, signal: 'SIGTERM' } },
    ...both('T06', 'interrupted'),
  },
  {
    name: 'a resume that was not confirmed takes the edge to failed',
    facts: { resumedFrom: SESSION, evidence: { sessionId: null } },
    ...both('T06', 'interrupted'),
  },
  {
    name: 'a resume with another session id takes the edge to failed',
    facts: { resumedFrom: 'session-0' },
    ...both('T06', 'interrupted'),
  },
  {
    name: 'a failure of the engine takes the edge to failed',
    facts: { evidence: { failure: { kind: 'turn', message: 'overloaded' } } },
    ...both('T06', 'interrupted'),
  },
  {
    name: 'a process that died takes the edge to failed',
    facts: { exit: { code: 1, signal: null } },
    ...both('T06', 'interrupted'),
  },
  {
    name: 'a question takes the edge to waiting, or to failed in an auto run',
    facts: { evidence: { questions: [QUESTION] } },
    auto: 'T06',
    interactive: 'T02',
    result: ['awaiting_user_input', 'awaiting_user_input'],
  },
  {
    name: 'a question without a session takes the edge to failed',
    facts: { evidence: { questions: [QUESTION], sessionId: null } },
    ...both('T06', 'awaiting_user_input'),
  },
  {
    name: 'a question at the last attempt takes the edge to failed',
    facts: { evidence: { questions: [QUESTION] }, attempt: 100 },
    ...both('T06', 'awaiting_user_input'),
  },
  {
    name: 'an invalid output takes the edge to failed',
    facts: {
      evidence: { success: true },
      output: { kind: 'invalid', problems: [phrase('unfit', { field: phrase('result') })] },
    },
    ...both('T06', 'completed'),
  },
  {
    name: 'a done marker takes the edge to succeeded',
    facts: { evidence: { done: { result: { answer: 42 } } } },
    ...both('T05', 'completed'),
  },
  {
    name: 'a valid output takes the edge to succeeded',
    facts: { evidence: { success: true }, output: { kind: 'valid', value: 1 } },
    ...both('T05', 'completed'),
  },
  {
    name: 'a done turn without a session takes the edge to succeeded',
    facts: { evidence: { done: { result: null }, sessionId: null } },
    ...both('T05', 'completed'),
  },
  {
    name: 'success takes the edge to succeeded, or to waiting in a conversation',
    facts: { evidence: { success: true, lastMessage: 'Hello.' } },
    auto: 'T05',
    interactive: 'T02',
    result: ['completed', 'awaiting_user_input'],
  },
  {
    name: 'a turn without evidence takes the edge to failed',
    facts: { evidence: { unfinished: 'NO_TURN_COMPLETED' } },
    ...both('T06', 'unknown'),
  },
];

function checkEnding(ending: Ending, mode: ExecutionMode): void {
  const { edge, drafts, verdict, error, question } = conclude(mode, ending.facts);
  expect(edge.id).toBe(ending[mode]);

  const facts = drafts.filter((each) => !isDiagnostic(each));
  expect(typesOf(facts)).toEqual(
    edge.to === 'waiting_user'
      ? ['lifecycle.turn.ended', 'interaction.requested', 'lifecycle.state.changed']
      : ['lifecycle.turn.ended', 'lifecycle.state.changed'],
  );
  // Diagnostics come first: only the consequences follow the end of the turn.
  expect(drafts.slice(-facts.length)).toEqual(facts);
  for (const each of drafts) expect(each).toMatchObject({ parser: 'orchestrator', confidence: 1, range: null });

  const [ended, ...rest] = store(facts);
  const changed = rest.at(-1);
  expect(ended?.data).toMatchObject({
    completion: { result: ending.result[mode === 'auto' ? 0 : 1], reason_code: verdict.reasonCode },
    streams: STREAMS,
    parser: PARSER,
  });
  expect(changed?.data).toMatchObject({ from: edge.from, to: edge.to, trigger: edge.on, updated_at: NOW });
  // A failed run has an error, and only a failed run.
  expect(changed?.data.error !== undefined).toBe(edge.to === 'failed');
  expect(error !== null).toBe(edge.to === 'failed');
  expect(question !== null).toBe(edge.to === 'waiting_user');

  checkEdge(edge.id, facts);
}

describe('each way a turn can end', () => {
  for (const ending of ENDINGS) {
    test(ending.name, () => {
      checkEnding(ending, 'auto');
      checkEnding(ending, 'interactive');
    });
  }

  test('the end of a turn takes exactly the edges that lead out of running without a restart', () => {
    const taken = new Set(ENDINGS.flatMap((ending) => [ending.auto, ending.interactive]));
    expect([...taken].toSorted()).toEqual(
      CONTRACT.filter((edge) => edge.from === 'running' && !edge.on.startsWith('restart.'))
        .map((edge) => edge.id)
        .toSorted(),
    );
  });

  test('an auto run never waits and ends in the same terminals with the same events as an interactive one', () => {
    const terminals = new Set<string>();
    for (const ending of ENDINGS) {
      const auto = conclude('auto', ending.facts);
      terminals.add(auto.edge.to);
      for (const other of ENDINGS) {
        const interactive = conclude('interactive', other.facts);
        if (interactive.edge.id !== auto.edge.id) continue;
        const shown = (drafts: readonly RaspDraft[]) => typesOf(converse(drafts.filter((each) => !isDiagnostic(each))));
        expect(shown(interactive.drafts)).toEqual(shown(auto.drafts));
      }
    }
    expect([...terminals].toSorted()).toEqual(['canceled', 'failed', 'succeeded']);
  });

  test('a turn without evidence is reported as a diagnostic with its reason code before it ends', () => {
    const { drafts } = conclude('auto', { evidence: { unfinished: 'NO_TURN_COMPLETED' } });
    const [first, second] = store(drafts);
    expect(first).toMatchObject({ type: 'diagnostic.completion.unknown', data: { reason_code: 'NO_TURN_COMPLETED' } });
    expect(second).toMatchObject({
      type: 'lifecycle.turn.ended',
      data: { completion: { result: 'unknown', reason_code: 'NO_TURN_COMPLETED' } },
    });
    expect(typesOf(converse(drafts))).toEqual([
      'diagnostic.warning',
      'conversation.failed',
      'conversation.state.changed',
    ]);
  });

  test('a turn that is done without a session id succeeds, with a diagnostic', () => {
    for (const mode of ['auto', 'interactive'] as const) {
      const { drafts } = conclude(mode, {
        evidence: { done: { result: 'ok' }, sessionId: null },
        handleChecked: false,
      });
      expect(store(drafts)[0]).toMatchObject({
        type: 'diagnostic.parser.warning',
        data: { code: 'SESSION_ID_MISSING' },
      });
      expect(typesOf(converse(drafts))).toEqual([
        'diagnostic.warning',
        'conversation.completed',
        'conversation.state.changed',
      ]);
    }
  });
});

describe('contents of the events of an ended turn', () => {
  test('a question is stored and shown whole, with the id and the session it belongs to', () => {
    const { drafts } = conclude('interactive', { evidence: { questions: [QUESTION] } });
    const asked = {
      interaction_id: 'int_1',
      kind: 'choose_one',
      prompt: 'Which one?',
      options: [
        { label: 'a', value: 'a' },
        { label: 'b', value: 'b' },
      ],
      default: 'a',
      channel: 'tool',
    };
    expect(store(drafts)[1]).toEqual({
      type: 'interaction.requested',
      data: { ...asked, asked_at: NOW },
      correlation: { session_id: SESSION, interaction_id: 'int_1' },
    });
    expect(dataOf(converse(drafts), 'user.input.required')).toEqual(asked);
  });

  test('several questions are shown as one with a field for each', () => {
    const { drafts } = conclude('interactive', { evidence: { questions: [QUESTION, parseQuestion('When?', 'tool')] } });
    expect(dataOf(converse(drafts), 'user.input.required')).toMatchObject({
      kind: 'fill_fields',
      fields: [{ prompt: 'Which one?' }, { prompt: 'When?' }],
    });
  });

  test('a continuing conversation asks with the last message', () => {
    const { drafts } = conclude('interactive', { evidence: { success: true, lastMessage: 'Hello.' } });
    expect(dataOf(converse(drafts), 'user.input.required')).toEqual({
      interaction_id: 'int_1',
      kind: 'open_text',
      prompt: 'Hello.',
      options: [],
      channel: 'conversation',
    });
  });

  test('the result of a run is stored and shown, also when it is null or false', () => {
    for (const result of [{ answer: 42 }, 'text', null, false, 0] satisfies Json[]) {
      const { drafts } = conclude('interactive', { evidence: { done: { result } } });
      expect(store(drafts).at(-1)?.data.result).toEqual(result);
      expect(dataOf(converse(drafts), 'conversation.completed')).toEqual({ result });
    }
  });

  test('a failure is stored and shown with its code, and the question that nobody answered', () => {
    const { drafts, error } = conclude('interactive', {
      evidence: { questions: [QUESTION] },
      exit: { code: 1, signal: null },
    });
    expect(error).toMatchObject({ code: 'ENGINE_EXITED', details: { unanswered: { prompt: 'Which one?' } } });
    expect(store(drafts).at(-1)?.data.error).toEqual(error);
    expect(dataOf(converse(drafts), 'conversation.failed')).toEqual({ error });
  });

  test('a secret in the words of the engine does not reach the error of the run', () => {
    const { drafts } = conclude('auto', {
      evidence: { failure: { kind: 'auth', message: 'invalid key sk-abcdefghijklmnop' } },
    });
    expect(JSON.stringify(store(drafts))).not.toContain('sk-abcdefghijklmnop');
    expect(store(drafts).at(-1)?.data.error).toMatchObject({
      code: 'ENGINE_AUTH_REQUIRED',
      message: 'invalid key [redacted]',
    });
  });

  test('how the process ended is kept', () => {
    const exit = { code: null, signal: 'SIGKILL' };
    expect(store(conclude('auto', { exit }).drafts)[0]?.data.exit).toEqual(exit);
  });
});

// --- the edges that no turn takes by itself: drafts as the orchestrator would store them ---

const ACTOR = { kind: 'user', name: 'ada' } as const;

function stateChanged(id: string, extra: Pick<RaspData['lifecycle.state.changed'], 'error' | 'actor'> = {}): RaspDraft {
  const edge: Edge | undefined = STICKY_CHART.find((candidate) => candidate.id === id);
  if (!edge) throw new Error(`there is no edge ${id}`);
  return draft('lifecycle.state.changed', {
    from: edge.from,
    to: edge.to,
    trigger: edge.on,
    updated_at: NOW,
    ...extra,
  });
}

const turnEnded = () =>
  draft('lifecycle.turn.ended', {
    exit: { code: null, signal: 'SIGKILL' },
    completion: { result: 'interrupted', reason_code: 'ORCHESTRATOR_RESTART_INTERRUPTED' },
    streams: STREAMS,
    parser: PARSER,
  });
const interrupted = { code: 'ORCHESTRATOR_RESTART_INTERRUPTED', message: 'Parley stopped.' };
const replied = () =>
  draft(
    'interaction.reply.accepted',
    {
      interaction_id: 'int_1',
      resolution_mode: 'user_reply',
      accepted_at: NOW,
      response: 'a',
      actor: ACTOR,
      idempotency_key: 'key-1',
    },
    { interactionId: 'int_1' },
  );
const decided = () =>
  draft(
    'interaction.auto_decide.timeout',
    {
      interaction_id: 'int_1',
      resolution_mode: 'auto_decide_timeout',
      policy: 'use_default',
      decided_at: NOW,
      response: 'a',
    },
    { interactionId: 'int_1' },
  );

describe('the edges that no turn takes by itself', () => {
  test('a turn that starts is shown as the change to running', () => {
    checkEdge('T01', [
      stateChanged('T01'),
      draft('lifecycle.turn.started', { argv: ['codex', 'exec'], resumed: false }),
    ]);
  });

  test('a reply is shown as accepted, then as the change from waiting to queued', () => {
    const events = checkEdge('T03', [replied(), stateChanged('T03')]);
    expect(events.map(({ type, data }) => ({ type, data }))).toEqual([
      {
        type: 'interaction.reply.accepted',
        data: { interaction_id: 'int_1', resolution_mode: 'user_reply', accepted_at: NOW, response: 'a', actor: ACTOR },
      },
      {
        type: 'conversation.state.changed',
        data: { from: 'waiting_user', to: 'queued', trigger: 'interaction.reply.accepted', updated_at: NOW },
      },
    ]);
  });

  test('an automatic decision is shown as decided, then as the change from waiting to queued', () => {
    const events = checkEdge('T04', [decided(), stateChanged('T04')]);
    expect(events.map(({ type, data }) => ({ type, data }))).toEqual([
      {
        type: 'interaction.auto_decide.timeout',
        data: { interaction_id: 'int_1', resolution_mode: 'auto_decide_timeout', policy: 'use_default', response: 'a' },
      },
      {
        type: 'conversation.state.changed',
        data: { from: 'waiting_user', to: 'queued', trigger: 'interaction.auto_decide.timeout', updated_at: NOW },
      },
    ]);
  });

  test('a cancel is shown with who did it, right before the change, from every state that can be canceled', () => {
    expect(dataOf(checkEdge('T07', [stateChanged('T07', { actor: ACTOR })]), 'conversation.canceled')).toEqual({
      actor: ACTOR,
    });
    expect(
      dataOf(checkEdge('T08', [turnEnded(), stateChanged('T08', { actor: ACTOR })]), 'conversation.canceled'),
    ).toEqual({ actor: ACTOR });
    expect(dataOf(checkEdge('T09', [stateChanged('T09', { actor: ACTOR })]), 'conversation.canceled')).toEqual({
      actor: ACTOR,
    });
  });

  test('a wait that survives a restart is recorded but shown as nothing', () => {
    const drafts = [stateChanged('T10')];
    expect(store(drafts)[0]?.data).toEqual({
      from: 'waiting_user',
      to: 'waiting_user',
      trigger: 'restart.preserve_waiting',
      updated_at: NOW,
    });
    expect(checkEdge('T10', drafts)).toEqual([]);
  });

  test('a wait that cannot survive a restart is shown as failed, with its reason', () => {
    const error = { code: 'SESSION_RESUME_FAILED', message: 'The session is gone.' };
    expect(dataOf(checkEdge('T11', [stateChanged('T11', { error })]), 'conversation.failed')).toEqual({ error });
  });

  test('a queued or running run that a restart interrupted is shown as failed, from the state it was in', () => {
    expect(dataOf(checkEdge('T12', [stateChanged('T12', { error: interrupted })]), 'conversation.failed')).toEqual({
      error: interrupted,
    });
    expect(
      dataOf(checkEdge('T13', [turnEnded(), stateChanged('T13', { error: interrupted })]), 'conversation.failed'),
    ).toEqual({ error: interrupted });
  });

  test('a resident process that is lost while waiting is shown as failed', () => {
    checkEdge('S01', [
      stateChanged('S01', { error: { code: 'INTERACTION_PROCESS_LOST', message: 'The process is gone.' } }),
    ]);
  });

  test('a terminal state is always announced right before the change that ends the conversation', () => {
    for (const edge of CONTRACT.filter((candidate) => ['succeeded', 'failed', 'canceled'].includes(candidate.to))) {
      const word = edge.to === 'succeeded' ? 'completed' : edge.to;
      expect(edge.fcmp, edge.id).toEqual([`conversation.${word}`, 'conversation.state.changed']);
      expect(
        typesOf(converse([stateChanged(edge.id, edge.to === 'failed' ? { error: interrupted } : {})])),
        edge.id,
      ).toEqual(edge.fcmp);
    }
  });
});

// Follows changes of state along the chart, from queued on; returns the last state.
function walk(changes: readonly JsonObject[]): string {
  let state = 'queued';
  for (const { from, to, trigger } of changes) {
    expect(from).toBe(state);
    const edge = CHART.find((candidate) => candidate.from === from && candidate.on === trigger);
    expect(edge?.to, `${String(from)} ${String(trigger)}`).toBe(to);
    state = String(to);
  }
  return state;
}

test('a whole interactive run walks the chart edge by edge in RASP and in FCMP, and ends where it ended', () => {
  const asked = conclude('interactive', { evidence: { questions: [QUESTION] } });
  const done = conclude('interactive', { attempt: 2, resumedFrom: SESSION, evidence: { done: { result: 'ok' } } });
  const drafts = [
    draft('lifecycle.run.created', { engine: 'codex', execution_mode: 'interactive', prompt: 'Do it.' }),
    stateChanged('T01'),
    ...asked.drafts,
    stateChanged('T10'),
    replied(),
    stateChanged('T03'),
    stateChanged('T01'),
    ...done.drafts,
  ];
  const inRasp = store(drafts)
    .filter((event) => event.type === 'lifecycle.state.changed')
    .map((event) => event.data);
  const events = converse(drafts);
  const inFcmp = events.filter((event) => event.type === 'conversation.state.changed').map((event) => event.data);
  expect(walk(inRasp)).toBe('succeeded');
  expect(walk(inFcmp)).toBe('succeeded');
  // FCMP leaves out only events that do not change the state.
  expect(inFcmp.map(({ trigger }) => trigger)).toEqual(
    inRasp.map(({ trigger }) => trigger).filter((trigger) => trigger !== 'restart.preserve_waiting'),
  );
  expect(typesOf(events).slice(0, 2)).toEqual(['conversation.started', 'user.message']);
});

// --- payloads ---

const WHOLE = {
  'lifecycle.state.changed': {
    from: 'waiting_user',
    to: 'queued',
    trigger: 'interaction.reply.accepted',
    updated_at: NOW,
  },
  'interaction.requested': { interaction_id: 'int_1', kind: 'open_text', prompt: 'Which?', options: [], asked_at: NOW },
  'interaction.reply.accepted': { interaction_id: 'int_1', resolution_mode: 'user_reply', accepted_at: NOW },
  'interaction.auto_decide.timeout': {
    interaction_id: 'int_1',
    resolution_mode: 'auto_decide_timeout',
    policy: 'engine_judgement',
  },
  'interaction.approval.applied': { interaction_id: 'int_1', decision: 'approve', digest: 'd', applied_at: NOW },
} as const satisfies Partial<{ [T in RaspType]: RaspData[T] }>;
type CheckedType = keyof typeof WHOLE;

// The FCMP members of each, and those that only RASP has.
const FCMP_OF: Partial<Record<CheckedType, { readonly type: string; readonly left_out: readonly string[] }>> = {
  'lifecycle.state.changed': { type: 'conversation.state.changed', left_out: [] },
  'interaction.requested': { type: 'user.input.required', left_out: ['asked_at'] },
  'interaction.reply.accepted': { type: 'interaction.reply.accepted', left_out: [] },
  'interaction.auto_decide.timeout': { type: 'interaction.auto_decide.timeout', left_out: [] },
};

const without = (data: object, member: string) =>
  Object.fromEntries(Object.entries(data).filter(([name]) => name !== member));
const make = (type: RaspType, data: object) => draft(type, data as never);
const inputOf = (type: string, data: unknown, seq = 1): FoldInput => ({
  seq,
  ts: NOW,
  attempt: 1,
  type,
  data,
  itemId: null,
  range: null,
});
const foldOnce = (type: string, data: unknown) =>
  new ConversationFold('run_1').push(inputOf(type, data)).map((line) => JSON.parse(line) as FcmpEvent);
const fcmpEnvelope = (type: string, data: unknown) => ({
  protocol_version: FCMP_VERSION,
  run_id: 'run_1',
  seq: 1,
  ts: NOW,
  attempt_number: 1,
  rasp_seq: 1,
  type,
  data,
});

// A complete payload is accepted everywhere; without any one of its members it is refused everywhere.
function checkPayload(type: CheckedType, members: readonly string[]): void {
  const whole = WHOLE[type];
  expect(Object.keys(whole).toSorted()).toEqual([...members].toSorted());
  expect(() => make(type, whole)).not.toThrow();
  const shown = FCMP_OF[type];
  if (shown) {
    const expected = shown.left_out.reduce<object>(without, whole);
    expect(foldOnce(type, whole).map((event) => ({ type: event.type, data: event.data }))).toEqual([
      { type: shown.type, data: expected },
    ]);
    expect(explainFcmp(fcmpEnvelope(shown.type, expected))).toBeNull();
  }
  for (const member of members) {
    expect(() => make(type, without(whole, member)), `a draft without ${member}`).toThrow(InvariantError);
    expect(() => make(type, { ...whole, [member]: undefined }), `a draft with an undefined ${member}`).toThrow(
      InvariantError,
    );
    expect(() => make(type, { ...whole, [member]: 7 }), `a draft with a number as ${member}`).toThrow(InvariantError);
    if (!shown || shown.left_out.includes(member)) continue;
    expect(() => foldOnce(type, without(whole, member)), `a fold without ${member}`).toThrow(InvariantError);
    expect(explainFcmp(fcmpEnvelope(shown.type, without(whole, member))), `FCMP without ${member}`).not.toBeNull();
  }
}

describe('payloads are checked when they are made and when they are shown', () => {
  test('a change of state without from, to, trigger or updated_at is refused', () => {
    checkPayload('lifecycle.state.changed', ['from', 'to', 'trigger', 'updated_at']);
  });

  test('an accepted reply without interaction_id, resolution_mode or accepted_at is refused', () => {
    checkPayload('interaction.reply.accepted', ['interaction_id', 'resolution_mode', 'accepted_at']);
  });

  test('an automatic decision without interaction_id, resolution_mode or policy is refused', () => {
    checkPayload('interaction.auto_decide.timeout', ['interaction_id', 'resolution_mode', 'policy']);
  });

  test('a question without interaction_id, kind, prompt, options or asked_at is refused', () => {
    checkPayload('interaction.requested', ['interaction_id', 'kind', 'prompt', 'options', 'asked_at']);
  });

  test('an applied approval without interaction_id, decision, digest or applied_at is refused', () => {
    checkPayload('interaction.approval.applied', ['interaction_id', 'decision', 'digest', 'applied_at']);
  });

  test('values outside the contract are refused: states, triggers, modes, policies, kinds and times', () => {
    const wrong: [CheckedType, object][] = [
      ['lifecycle.state.changed', { from: 'paused' }],
      ['lifecycle.state.changed', { to: 'done' }],
      ['lifecycle.state.changed', { trigger: 'turn.finished' }],
      ['lifecycle.state.changed', { updated_at: '2026-04-01T12:00:00Z' }],
      ['lifecycle.state.changed', { updated_at: '2026-04-01T14:00:00.000+02:00' }],
      ['interaction.reply.accepted', { resolution_mode: 'auto_decide_timeout' }],
      ['interaction.reply.accepted', { accepted_at: 'now' }],
      ['interaction.auto_decide.timeout', { resolution_mode: 'user_reply' }],
      ['interaction.auto_decide.timeout', { policy: 'approve' }],
      ['interaction.requested', { kind: 'multiple_choice' }],
      ['interaction.requested', { options: [{ label: 'a' }] }],
    ];
    for (const [type, change] of wrong) {
      const data = { ...WHOLE[type], ...change };
      expect(() => make(type, data), `${type} ${JSON.stringify(change)}`).toThrow(InvariantError);
      expect(() => foldOnce(type, data), `${type} ${JSON.stringify(change)}`).toThrow(InvariantError);
    }
  });

  test('a change to failed whose error has no code or no message is refused', () => {
    const change = { from: 'running', to: 'failed', trigger: 'turn.failed', updated_at: NOW };
    for (const error of [{ code: 'INTERNAL' }, { message: 'x' }, {}, 'x']) {
      expect(() => make('lifecycle.state.changed', { ...change, error })).toThrow(InvariantError);
    }
  });

  test('a payload that the fold refuses leaves nothing behind for the events after it', () => {
    const good = { from: 'running', to: 'succeeded', trigger: 'turn.succeeded', updated_at: NOW };
    const fold = new ConversationFold('run_1');
    expect(() => fold.push(inputOf('lifecycle.state.changed', without(good, 'updated_at')))).toThrow(InvariantError);
    const events = fold.push(inputOf('lifecycle.state.changed', good, 2)).map((line) => JSON.parse(line) as FcmpEvent);
    expect(events.map(({ type, seq }) => ({ type, seq }))).toEqual([
      { type: 'conversation.completed', seq: 1 },
      { type: 'conversation.state.changed', seq: 2 },
    ]);
  });

  test('no turn can end with an event that the chart does not allow for a running run', () => {
    for (const ending of ENDINGS) {
      for (const mode of ['auto', 'interactive'] as const) {
        const { edge, question, verdict } = conclude(mode, ending.facts);
        expect(
          step('running', verdict.event, {
            pending: question !== null,
            handle: true,
            requireUserReply: true,
            sticky: false,
          }),
        ).toEqual({ legal: true, edge });
      }
    }
  });
});
