// Responses can contain any row that the store accepts: one unusual row must not fail its page.
import { assert, constantFrom, jsonValue, oneof, property, tuple } from 'fast-check';
import { expect, test } from 'vitest';
import { viewRunSummary } from '../../src/journal/run-view.js';
import { inboxItem, runSummary } from '../../src/service/schemas.js';
import { damageIn } from '../../src/kernel/stored-json.js';
import { toInteraction, toRun, type InteractionRow, type RunRow } from '../../src/store/rows.js';
import { runs } from '../support/runs.js';

const RUN_ID = `run_${'0'.repeat(26)}`;
const SPEC = {
  engine: 'codex',
  execution_mode: 'auto',
  prompt: 'x',
  cwd: '/',
  home: null,
  permission: 'full',
  runtime_options: {},
  labels: { a: 'b' },
  model: 'm',
  continue_from: RUN_ID,
  retry_of: RUN_ID,
  fork_from: { run_id: RUN_ID, session: 's', home: '/' },
};
const RUN = {
  run_id: RUN_ID,
  request_id: 'r',
  request_digest: 'd',
  spec_json: SPEC,
  status: 'failed',
  attempt_number: 1,
  epoch: 0,
  error_json: { code: 'INTERNAL', message: 'm', details: {} },
  result_json: { a: 1 },
  cancel_requested_json: null,
  waited_ms: 0,
  crashes: 0,
  created_at: 1,
  updated_at: 1,
  rasp_seq: 1,
  fcmp_seq: 1,
  ts: 1,
  digest: 'd',
};
const QUESTION = {
  kind: 'fill_fields',
  prompt: 'x',
  options: [{ label: 'a', value: 1, description: 'd' }],
  default: 1,
  action: {},
  digest: 'd',
  response_schema: {},
  channel: 'native',
  fields: [{ id: 'a', kind: 'confirm', prompt: 'p', options: [{ label: 'a', value: 1 }], default: 1 }],
};
const INTERACTION = {
  interaction_id: 'int_1',
  run_id: RUN_ID,
  attempt_number: 1,
  question_json: QUESTION,
  state: 'answered',
  asked_at: 1,
  due_at: 1,
  decides: 0,
  resolution_json: {
    at: 1,
    response: 1,
    actor: { kind: 'token', name: 'a', token: 't' },
    idempotency_key: null,
    finish: false,
  },
};

const ODD = oneof(
  constantFrom<unknown>(null, 0, -1, 5, 1.5, 8e15, 9e18, '', 'x', true, [], {}, [null], { label: 5 }, undefined),
  jsonValue({ maxDepth: 2 }),
);

// All paths to a member, at any depth.
function pathsOf(value: unknown, path: readonly string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => {
    const own = [...path, key];
    return [own].concat(pathsOf(member, own));
  });
}

function replaceAt(value: unknown, [key = '', ...rest]: readonly string[], odd: unknown): unknown {
  const copy = structuredClone(value) as Record<string, unknown>;
  copy[key] = rest.length === 0 ? odd : replaceAt(copy[key], rest, odd);
  return copy;
}

const isText = (name: string, column: unknown): boolean => name.endsWith('_json') || typeof column === 'object';

// As a database returns it: JSON columns are text, and no column holds an object.
function toRow(value: unknown): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value as object).map(([name, column]) => [
      name,
      column !== null && isText(name, column) ? (JSON.stringify(column) ?? 'null') : column,
    ]),
  );
}

function unlessDamaged<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (!damageIn(error)) throw error;
    return null;
  }
}

const mutated = (row: object) =>
  tuple(constantFrom(...pathsOf(row)), ODD).map(([path, odd]) => toRow(replaceAt(row, path, odd)));

test('each run that is read from a row fits the response, and so does each question', () => {
  const whole = toRun(toRow(RUN) as unknown as RunRow);
  const check = (run: RunRow, question: InteractionRow): void => {
    const record = unlessDamaged(() => toRun(run));
    const interaction = unlessDamaged(() => toInteraction(question));
    const view = viewRunSummary(
      { ...(record ?? whole), truncated: [] },
      interaction && { ...interaction, truncated: [] },
      5,
    );
    const item = { ...view.interaction, engine: 'codex', prompt: 'x', labels: {}, truncated: [] };
    expect(runSummary.safeParse(view).error?.issues ?? []).toEqual([]);
    if (interaction) expect(inboxItem.safeParse(item).error?.issues ?? []).toEqual([]);
  };
  check(toRow(RUN) as unknown as RunRow, toRow(INTERACTION) as unknown as InteractionRow);
  expect(unlessDamaged(() => toInteraction(toRow(INTERACTION) as unknown as InteractionRow))).not.toBeNull();
  assert(
    property(mutated(RUN), mutated(INTERACTION), (run, question) =>
      check(run as unknown as RunRow, question as unknown as InteractionRow),
    ),
    { numRuns: runs(3000) },
  );
});
