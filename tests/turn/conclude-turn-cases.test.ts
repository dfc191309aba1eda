// The end of a turn as data: the change of the run, and which engine messages become public.
import { describe, expect, test } from 'vitest';
import { draft } from '../../src/rasp/draft.js';
import type { TurnFacts } from '../../src/run/judge-completion.js';
import { concludeTurn, type TurnConclusion, type TurnEnd } from '../../src/turn/conclude-turn.js';

const ANN = { kind: 'token', name: 'ann' } as const;
const KEY = `sk-${'a1B2'.repeat(12)}`;

type Changes = Partial<Omit<TurnFacts, 'evidence'>> & { readonly evidence?: Partial<TurnFacts['evidence']> };

function conclude({ evidence, ...facts }: Changes, rest: Partial<TurnEnd> = {}): TurnConclusion {
  return concludeTurn({
    facts: {
      mode: 'interactive',
      attempt: 1,
      maxAttempt: 100,
      evidence: {
        sessionId: 's-1',
        success: true,
        failure: null,
        unfinished: null,
        questions: [],
        done: null,
        lastMessage: 'Hello.',
        complaint: null,
        ...evidence,
      },
      exit: { code: 0, signal: null },
      endedByUs: null,
      resumedFrom: null,
      handleChecked: true,
      output: { kind: 'not_asked' },
      ...facts,
    },
    now: 0,
    interactionId: 'int_1',
    streams: { stdout: { bytes: 0, sha256: '' }, stderr: { bytes: 0, sha256: '' } },
    parser: { profile: 'codex_ndjson', units: 0, parsed: 0, fallbacks: 0, hit_rate: null, warnings: {} },
    ...rest,
  });
}

const typesOf = ({ transition }: TurnConclusion): string[] => transition.before.map(({ type }) => type);
const FAILURE = { failure: { kind: 'turn', message: 'overloaded' } } as const;

test('a session is a fact only if it is named and was found', () => {
  expect(conclude({}).transition.facts.handle).toBe(true);
  expect(conclude({ handleChecked: false }).transition.facts.handle).toBe(false);
  expect(conclude({ evidence: { sessionId: null } }).transition.facts.handle).toBe(false);
});

test('only a canceled turn names who canceled it', () => {
  expect(conclude({ endedByUs: 'canceled' }, { canceledBy: ANN }).transition.actor).toEqual(ANN);
  expect(conclude({}, { canceledBy: ANN }).transition.actor).toBeUndefined();
});

test('remarks come before the judgement', () => {
  const remarks = [draft('diagnostic.engine.warning', { message: 'left behind' })];
  expect(typesOf(conclude({}, { remarks }))).toEqual([
    'diagnostic.engine.warning',
    'lifecycle.turn.ended',
    'interaction.requested',
  ]);
});

test('a turn without evidence is reported with the message of its error', () => {
  const { transition, error } = conclude({ evidence: { success: false, unfinished: 'NO_TURN_COMPLETED' } });
  expect(error?.message).toBeTruthy();
  expect(transition.before[0]).toMatchObject({
    type: 'diagnostic.completion.unknown',
    data: { reason_code: 'NO_TURN_COMPLETED', message: error?.message },
  });
});

test('a missing session is reported only for a turn that succeeded', () => {
  const missing = { sessionId: null, done: { result: 1 } };
  expect(typesOf(conclude({ evidence: missing }))).toContain('diagnostic.parser.warning');
  expect(typesOf(conclude({ evidence: { sessionId: null, ...FAILURE } }))).not.toContain('diagnostic.parser.warning');
});

describe('the error of a turn', () => {
  test('has no details if there are none', () => {
    const { error } = conclude({ evidence: FAILURE });
    expect(error?.message).toContain('overloaded');
    expect(error).not.toHaveProperty('details');
    expect(conclude({ endedByUs: 'shutdown' }).error).not.toHaveProperty('values');
  });

  test('is at most 2000 characters long and holds no key', () => {
    const message = `${KEY} ${'x'.repeat(3000)}`;
    const { error } = conclude({ evidence: { failure: { kind: 'turn', message } } });
    expect(error?.message).not.toContain('a1B2a1B2');
    expect(error?.values).toEqual({ reason: expect.stringMatching(/^\[redacted\] x{1900,2000}…$/) as string });
    const plain = conclude({ evidence: { failure: { kind: 'turn', message: 'x'.repeat(3000) } } }).error?.message;
    expect(plain?.replace('…', '')).toHaveLength(2000);
  });

  test('keeps its cause, shortened and without keys', () => {
    const message = `${KEY} ${'x'.repeat(3000)}`;
    const { error } = conclude({
      resumedFrom: 's-1',
      evidence: { sessionId: null, failure: { kind: 'turn', message } },
    });
    const cause = error?.details?.cause as { readonly code?: string; readonly message: string };
    expect(error?.code).toBe('SESSION_RESUME_FAILED');
    expect(cause.code).toBeTruthy();
    expect(cause.message.length).toBeLessThan(2100);
    expect(cause.message).not.toContain('a1B2a1B2');
    expect(cause.message).toContain('xxx');
  });
});
