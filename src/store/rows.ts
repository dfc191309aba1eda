// Rows as they stand in the database, and the records they become.
import type { Json, JsonObject } from '../kernel/json.js';
import { DamagedDataError, readStoredJson } from '../kernel/stored-json.js';
import type { RunError } from '../run/judge-completion.js';
import type { RunState } from '../run/statechart.js';
import type { CancelWish, InteractionRecord, InteractionState, Resolution, RunRecord, RunSpec } from './store.js';

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

export function toRun(row: RunRow): RunRecord {
  const at = (column: string): string => `${column} of run ${row.run_id}`;
  checkNumbers(row, ['attempt_number', 'epoch', 'waited_ms', 'crashes', 'created_at', 'updated_at', 'rasp_seq', 'fcmp_seq', 'ts'], at);
  return {
    run_id: row.run_id,
    request_id: row.request_id,
    spec: readStoredJson(row.spec_json, at('spec_json')) as RunSpec,
    status: row.status,
    attempt_number: row.attempt_number,
    epoch: row.epoch,
    error: row.error_json === null ? null : (readStoredJson(row.error_json, at('error_json')) as RunError),
    result: row.result_json === null ? null : (readStoredJson(row.result_json, at('result_json')) as Json),
    cancel_requested: row.cancel_requested_json === null ? null : (readStoredJson(row.cancel_requested_json, at('cancel_requested_json')) as CancelWish),
    waited_ms: row.waited_ms,
    crashes: row.crashes,
    created_at: row.created_at,
    updated_at: row.updated_at,
    heads: { rasp_seq: row.rasp_seq, fcmp_seq: row.fcmp_seq, ts: row.ts, digest: row.digest },
  };
}

export function toInteraction(row: InteractionRow): InteractionRecord {
  const at = (column: string): string => `${column} of question ${row.interaction_id} of run ${row.run_id}`;
  checkNumbers(row, ['attempt_number', 'asked_at', 'due_at'], at);
  return {
    interaction_id: row.interaction_id,
    run_id: row.run_id,
    attempt_number: row.attempt_number,
    question: readStoredJson(row.question_json, at('question_json')) as JsonObject,
    state: row.state,
    asked_at: row.asked_at,
    due_at: row.due_at,
    decides: Boolean(row.decides),
    resolution: row.resolution_json === null ? null : (readStoredJson(row.resolution_json, at('resolution_json')) as Resolution),
  };
}

function checkNumbers<Row>(row: Row, columns: readonly (keyof Row & string)[], at: (column: string) => string): void {
  const wrong = columns.find((column) => typeof row[column] !== 'number');
  if (wrong !== undefined) throw new DamagedDataError(`${at(wrong)} is no number`);
}
