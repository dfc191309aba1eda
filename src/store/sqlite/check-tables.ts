// Is a file what it is taken for? Looked at before it is brought up to date, so that nothing is built on damage or into the database of
// another program, and afterwards.
import { RequestError } from '../../run/request-error.js';
import type { Database } from './open-database.js';

// Every table of the present version with its columns, and every index.
const TABLES: Readonly<Record<string, string>> = {
  deliveries: 'delivery_id hook type payload_json run_id rasp_seq digest created_at state tries next_at error',
  interactions: 'interaction_id run_id attempt_number question_json state asked_at due_at decides resolution_json',
  request_interactive_runtime: 'request_id effective_session_timeout_sec session_handle_json updated_at',
  run_labels: 'run_id key value',
  runs: 'run_id request_id request_digest engine spec_json status attempt_number epoch error_json result_json cancel_requested_json created_at updated_at queued_at rasp_seq fcmp_seq ts digest waited_ms',
  segments: 'run_id protocol seq_from seq_to ts_from ts_to body',
  turns: 'run_id attempt_number engine profile units parsed fallbacks warnings_json completion reason_code',
};
const INDEXES = ['deliveries_due', 'deliveries_given_up', 'interactions_by_run', 'one_pending_per_run', 'pending_by_age', 'pending_by_decision', 'runs_by_home', 'runs_by_status', 'runs_queued', 'segments_by_seq'];
// The only one that the predecessor shares with us.
const OLDEST_TABLE = 'request_interactive_runtime';

export function checkTables(db: Database): void {
  for (const [table, columns] of Object.entries(TABLES)) {
    const found = tell(db, `SELECT tell_value(column.name) FROM sqlite_master AS the JOIN pragma_table_info(the.name) AS column WHERE the.type = 'table' AND the.name = '${table}'`);
    if (found.toSorted().join(' ') !== columns.split(' ').toSorted().join(' ')) throw damaged(found.length === 0 ? `the table ${table} is missing` : `the table ${table} has not the columns it should have`);
  }
  const indexes = new Set(tell(db, `SELECT tell_value(name) FROM sqlite_master WHERE type = 'index'`));
  const missing = INDEXES.find((name) => !indexes.has(name));
  if (missing !== undefined) throw damaged(`the index ${missing} is missing`);
}

// Reads all of it, which takes its time; a file is brought up to date once.
export function checkSound(db: Database, version: number): void {
  const tables = tell(db, `SELECT tell_value(name) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'`);
  if (version < 0 || (version === 0 && tables.length > 0 && !tables.includes(OLDEST_TABLE))) throw new RequestError('DATA_DIR_UNUSABLE', 'parley.db is the database of another program; it was left as it is');
  const [finding = 'ok'] = tell(db, 'SELECT tell_value(integrity_check) FROM pragma_integrity_check');
  if (finding !== 'ok') throw damaged(finding.replaceAll(/[*\s]+/g, ' ').trim());
}

function damaged(finding: string): RequestError {
  return new RequestError('DATA_DIR_UNUSABLE', `the database parley.db is damaged and was left as it is: ${finding}`);
}

// Without a prepared statement: one that is not collected yet would hold the files of a database that is closed.
export function tell(db: Database, query: string): string[] {
  const values: string[] = [];
  db.function('tell_value', (value: unknown) => {
    values.push(String(value));
    return null;
  });
  db.exec(query);
  return values;
}
