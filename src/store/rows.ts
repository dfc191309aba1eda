// Rows of the database, and the records that they become.
import { isObject } from '../kernel/json.js';
import { damageText } from '../kernel/damage-texts.js';
import type { Message } from '../kernel/message.js';
import { DamagedDataError, damageIn, readStoredJson } from '../kernel/stored-json.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import { STATES, type RunState } from '../run/statechart.js';
import type { InteractionRecord, InteractionState, RunRecord, RunSpec } from './store.js';
import {
  isCancelRequest,
  isCount,
  isQuestion,
  isResolution,
  isResult,
  isRunError,
  isRunId,
  isSpec,
  isTime,
} from './stored-shapes.js';

export interface RunRow {
  run_id: string;
  request_id: string;
  request_digest: string;
  spec_json: string;
  status: RunState;
  attempt_number: number;
  epoch: number;
  error_json: string | null;
  result_json: string | null;
  cancel_requested_json: string | null;
  waited_ms: number;
  crashes: number;
  created_at: number;
  updated_at: number;
  rasp_seq: number;
  fcmp_seq: number;
  ts: number;
  digest: string;
}

export interface InteractionRow {
  interaction_id: string;
  run_id: string;
  attempt_number: number;
  question_json: string;
  state: InteractionState;
  asked_at: number;
  due_at: number;
  decides: number | boolean;
  resolution_json: string | null;
}

// Called for each damaged column; returns normally if the rest of the row should still be read.
type OnDamage = (damage: DamagedDataError) => void;

const refuse: OnDamage = (damage) => {
  throw damage;
};

// Throws a DamagedDataError if a column is damaged.
export function toRun(row: RunRow): RunRecord {
  return readRun(row, refuse);
}

// Reads as much of the row as can be read, with a neutral value for each damaged column, and names those columns.
export function salvageRun(row: Readonly<Record<string, unknown>>, damage: Message[]): RunRecord {
  return readRun(row as Readonly<Record<keyof RunRow, unknown>>, (damaged) => void damage.push(damaged.damage));
}

// Columns that repeat a part of the spec, if the store has read them.
interface RepeatedColumns {
  readonly engine?: unknown;
  readonly cwd?: unknown;
  readonly home?: unknown;
  readonly continues?: unknown;
}

function readRun(row: Readonly<Record<keyof RunRow, unknown>> & RepeatedColumns, onDamage: OnDamage): RunRecord {
  const column = readerOf(row, () => damageText('damage.run', { run: String(row.run_id) }), onDamage);
  const nothing = { ...NO_SPEC, engine: typeof row.engine === 'string' ? row.engine : '' };
  const spec = column.json('spec_json', isSpec, nothing);
  if (spec !== nothing) checkRepeated(row, spec, onDamage);
  return {
    run_id: column.runId('run_id'),
    request_id: column.text('request_id', ''),
    spec,
    status: column.oneOf('status', STATES, 'failed'),
    attempt_number: column.number('attempt_number', 1, 1),
    epoch: column.number('epoch', 0),
    error: column.json('error_json', isRunError, null),
    result: column.json('result_json', isResult, null),
    cancel_requested: column.json('cancel_requested_json', isCancelRequest, null),
    waited_ms: column.number('waited_ms', 0),
    crashes: column.number('crashes', 0),
    created_at: column.time('created_at', 0),
    updated_at: column.time('updated_at', 0),
    heads: {
      rasp_seq: column.number('rasp_seq', 0),
      fcmp_seq: column.number('fcmp_seq', 0),
      ts: column.time('ts', 0),
      digest: column.text('digest', '0'.repeat(64)),
    },
  };
}

// Runs are found and deleted by these columns, so they must match the spec.
function checkRepeated(row: RepeatedColumns & { readonly run_id: unknown }, spec: RunSpec, onDamage: OnDamage): void {
  const wrong = [
    ...(differs(row.cwd, spec.cwd) ? ['cwd'] : []),
    ...(differs(row.home, spec.home) ? ['home'] : []),
    ...(row.continues !== undefined && Number(row.continues) !== Number(spec.continue_from !== undefined)
      ? ['continues']
      : []),
  ];
  const owner = damageText('damage.run', { run: String(row.run_id) });
  for (const column of wrong)
    onDamage(
      new DamagedDataError(damageText('damage.other_request', { what: damageText('damage.of', { column, owner }) })),
    );
}

// Compared as bytes: the store may write a lone surrogate differently.
function differs(column: unknown, value: string | null): boolean {
  if (column === undefined) return false;
  if (typeof column !== 'string' || value === null) return column !== value;
  return !Buffer.from(column).equals(Buffer.from(value));
}

export function toInteraction(row: InteractionRow): InteractionRecord {
  const owner = (): Message =>
    damageText('damage.question', { question: String(row.interaction_id), run: String(row.run_id) });
  const column = readerOf(row, owner, refuse);
  return {
    interaction_id: column.text('interaction_id', ''),
    run_id: column.runId('run_id'),
    attempt_number: column.number('attempt_number', 1, 1),
    question: column.json('question_json', isQuestion, {}),
    state: column.oneOf('state', INTERACTION_STATES, 'abandoned'),
    asked_at: column.time('asked_at', 0),
    due_at: column.time('due_at', 0),
    decides: Boolean(row.decides),
    resolution: column.json('resolution_json', isResolution, null),
  };
}

export function toHandle(text: string | null | undefined, requestId: string): EngineSessionHandle | null {
  if (!text) return null;
  const what = (): Message =>
    damageText('damage.of', {
      column: 'session_handle_json',
      owner: damageText('damage.request', { request: requestId }),
    });
  const handle = readStoredJson(text, what);
  if (!isObject(handle) || typeof handle.handle_value !== 'string')
    throw new DamagedDataError(damageText('damage.form', { what: what() }));
  return handle as unknown as EngineSessionHandle;
}

// Leaves out damaged questions, so that one does not hide the others; `parley doctor` and verify report them.
export function* readableInteractions(rows: Iterable<InteractionRow>): Generator<InteractionRecord> {
  for (const row of rows) {
    try {
      yield toInteraction(row);
    } catch (error) {
      if (!damageIn(error)) throw error;
    }
  }
}

const INTERACTION_STATES: readonly InteractionState[] = [
  'pending',
  'answered',
  'auto_decided',
  'canceled',
  'abandoned',
];
const NO_SPEC: RunSpec = {
  engine: '',
  execution_mode: 'auto',
  prompt: '',
  cwd: '',
  home: null,
  permission: 'read-only',
  runtime_options: {},
  labels: {},
};

// Reads columns one by one; a damaged one is reported and read as `otherwise`.
function readerOf(row: object, owner: () => Message, onDamage: OnDamage) {
  const value = (name: string): unknown => (row as Readonly<Record<string, unknown>>)[name];
  const nameOf = (column: string): Message => damageText('damage.of', { column, owner: owner() });
  const damaged = <T>(damage: Message, otherwise: T): T => {
    onDamage(new DamagedDataError(damage));
    return otherwise;
  };
  return {
    number: (name: string, otherwise: number, least = 0): number => {
      const actual = value(name);
      return isCount(actual) && actual >= least
        ? actual
        : damaged(damageText('damage.not_number', { what: nameOf(name) }), otherwise);
    },
    time: (name: string, otherwise: number): number => {
      const actual = value(name);
      return isTime(actual) ? actual : damaged(damageText('damage.not_time', { what: nameOf(name) }), otherwise);
    },
    // A damaged id is kept, because the row is found by it.
    runId: (name: string): string => {
      const actual = value(name);
      if (!isRunId(actual)) damaged(damageText('damage.not_run_id', { what: nameOf(name) }), null);
      return String(actual);
    },
    text: (name: string, otherwise: string): string => {
      const actual = value(name);
      return typeof actual === 'string'
        ? actual
        : damaged(damageText('damage.not_text', { what: nameOf(name) }), otherwise);
    },
    oneOf: <T extends string>(name: string, all: readonly T[], otherwise: T): T =>
      all.find((each) => each === value(name)) ??
      damaged(damageText('damage.none_of', { what: nameOf(name), all }), otherwise),
    // An empty column is null if the schema allows it.
    json: <T, E>(name: string, fits: (value: unknown) => value is T, otherwise: E): T | E => {
      const actual = value(name);
      if (actual === null)
        return otherwise === null ? otherwise : damaged(damageText('damage.empty', { what: nameOf(name) }), otherwise);
      try {
        const parsed = readStoredJson(String(actual), () => nameOf(name));
        return fits(parsed) ? parsed : damaged(damageText('damage.form', { what: nameOf(name) }), otherwise);
      } catch (error) {
        onDamage(damageIn(error) ?? new DamagedDataError(String(error)));
        return otherwise;
      }
    },
  };
}
