// Checks that a file is a Parley database, before and after a migration, so that nothing is built on damaged data or in
// the database of another program.
import type { Phrase } from '../../kernel/fill-template.js';
import { phrase } from '../../messages/phrase.js';
import { refusal, type RequestError } from '../../run/request-error.js';
import { RESTORE } from './explain-sqlite.js';
import type { Database } from './open-database.js';

// Every table of the current version with its columns, every index, and the triggers that the totals need: `!` marks a
// column that must not be empty, `#` its place in the key.
const TABLES: Readonly<Record<string, string>> = {
  audit: 'seq:INTEGER#1 ts:INTEGER! type:TEXT! actor_json:TEXT address:TEXT body_json:TEXT! digest:TEXT!',
  audit_head: 'only:INTEGER#1 seq:INTEGER! digest:TEXT!',
  deliveries:
    'delivery_id:TEXT#1 hook:TEXT! type:TEXT! payload_json:TEXT! run_id:TEXT! rasp_seq:INTEGER! digest:TEXT! ' +
    'created_at:INTEGER! state:TEXT! tries:INTEGER! next_at:INTEGER! error:TEXT',
  event_groups: 'group_id:INTEGER#1 body:BLOB! packed:INTEGER!',
  interactions:
    'interaction_id:TEXT#1 run_id:TEXT! attempt_number:INTEGER! question_json:TEXT! state:TEXT! asked_at:INTEGER! ' +
    'due_at:INTEGER! decides:INTEGER! resolution_json:TEXT engine:TEXT',
  request_interactive_runtime:
    'request_id:TEXT#1 effective_session_timeout_sec:INTEGER! session_handle_json:TEXT updated_at:TEXT!',
  run_labels: 'run_id:TEXT!#3 key:TEXT!#1 value:TEXT!#2',
  runs:
    'run_id:TEXT#1 request_id:TEXT! request_digest:TEXT! engine:TEXT! spec_json:TEXT! status:TEXT! ' +
    'attempt_number:INTEGER! epoch:INTEGER! error_json:TEXT result_json:TEXT cancel_requested_json:TEXT ' +
    'created_at:INTEGER! updated_at:INTEGER! queued_at:INTEGER rasp_seq:INTEGER! fcmp_seq:INTEGER! ' +
    'ts:INTEGER! digest:TEXT! waited_ms:INTEGER! crashes:INTEGER! at_work:INTEGER! cwd:TEXT home:TEXT ' +
    'continues:INTEGER!',
  segments:
    'run_id:TEXT! protocol:TEXT! seq_from:INTEGER! seq_to:INTEGER! ts_from:INTEGER! ts_to:INTEGER! body:BLOB! ' +
    'packed:INTEGER! flushes:TEXT',
  sessions:
    'sha256:TEXT#1 session_id:TEXT! token_sha256:TEXT! token:TEXT person:TEXT! created_at:INTEGER! ' +
    'last_used_at:INTEGER! expires_at:INTEGER! ends_at:INTEGER! address:TEXT user_agent:TEXT',
  sign_in_codes: 'sha256:TEXT#1 token_sha256:TEXT! expires_at:INTEGER!',
  token_uses: 'token_sha256:TEXT#1 used_at:INTEGER! address:TEXT',
  totals: 'subject:TEXT!#1 engine:TEXT!#2 profile:TEXT!#3 measure:TEXT!#4 count:INTEGER!',
  turns:
    'run_id:TEXT!#1 attempt_number:INTEGER!#2 engine:TEXT! profile:TEXT! units:INTEGER! parsed:INTEGER! ' +
    'fallbacks:INTEGER! warnings_json:TEXT! completion:TEXT! reason_code:TEXT!',
};
const INDEXES = [
  'audit_by_type',
  'deliveries_by_run',
  'deliveries_due',
  'deliveries_given_up',
  'interactions_by_run',
  'one_pending_per_run',
  'pending_by_age',
  'pending_by_decision',
  'pending_by_due',
  'pending_by_engine',
  'run_labels_by_run',
  'runs_at_work',
  'runs_at_work_by_home',
  'runs_by_cwd',
  'runs_by_engine',
  'runs_by_home',
  'runs_by_status',
  'runs_by_status_and_engine',
  'runs_by_tail',
  'runs_ended',
  'runs_queued',
  'segments_by_seq',
  'sessions_by_end',
  'sessions_by_person',
  'sessions_by_token',
  'sign_in_codes_by_expiry',
];
// The triggers that maintain the totals.
const TRIGGERS = [
  ...['deliveries', 'interactions', 'runs'].flatMap((table) =>
    ['added', 'entered', 'left', 'removed'].map((change) => `${table}_${change}`),
  ),
  'turns_added',
];
// The only table that the predecessor shares with us.
const OLDEST_TABLE = 'request_interactive_runtime';

export function checkTables(db: Database): void {
  for (const [table, columns] of Object.entries(TABLES)) {
    const actual = tell(
      db,
      `SELECT tell_value(column.name || ':' || column.type || iif(column."notnull", '!', '') || iif(column.pk,
        '#' || column.pk, ''))
        FROM sqlite_master AS the JOIN pragma_table_info(the.name) AS column WHERE the.type = 'table'
        AND the.name = '${table}'`,
    );
    if (actual.toSorted().join(' ') !== columns.split(' ').toSorted().join(' '))
      throw damaged(actual.length === 0 ? phrase('table_missing', { table }) : phrase('table_columns', { table }));
  }
  const find = (type: string, names: readonly string[]): string | undefined => {
    const existing = new Set(tell(db, `SELECT tell_value(name) FROM sqlite_master WHERE type = '${type}'`));
    return names.find((name) => !existing.has(name));
  };
  const index = find('index', INDEXES);
  if (index !== undefined) throw damaged(phrase('index_missing', { index }));
  const trigger = find('trigger', TRIGGERS);
  if (trigger !== undefined) throw damaged(phrase('trigger_missing', { trigger }));
}

// Reads the whole file, which takes time; a file is migrated once.
export function checkSound(db: Database, version: number): void {
  const tables = tell(
    db,
    `SELECT tell_value(name) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'`,
  );
  if (version < 0 || (version === 0 && tables.length > 0 && !tables.includes(OLDEST_TABLE)))
    throw refusal('DATA_DIR_UNUSABLE.foreign');
  const [finding = 'ok'] = tell(db, 'SELECT tell_value(integrity_check) FROM pragma_integrity_check');
  if (finding !== 'ok') throw damaged(finding.replaceAll(/[*\s]+/g, ' ').trim());
}

function damaged(finding: Phrase | string): RequestError {
  return refusal('DATA_DIR_UNUSABLE.damaged', { finding, way_out: RESTORE });
}

// Uses no prepared statement: one that is not yet garbage-collected would keep the files of a closed database open.
export function tell(db: Database, query: string): string[] {
  const values: string[] = [];
  db.function('tell_value', (value: unknown) => {
    values.push(String(value));
    return null;
  });
  db.exec(query);
  return values;
}
