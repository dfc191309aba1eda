// Fills a data directory with runs through SQL: most have ended, a tenth waits, a tenth is queued. One engine has few
// runs, one label has few and another has half of them, and one webhook has a pending delivery for every tenth run.
import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { openDatabase } from '../../dist/store/sqlite/open-database.js';

export const NOW = Date.parse('2026-11-01T00:00:00.000Z');
export const FEW = 20;

export const HOUR_MS = 3600 * 1000;
export const SPEC = {
  execution_mode: 'interactive',
  prompt: 'Find out why the tests of the parser fail on the slow machine, and fix it. '.repeat(8),
  permission: 'workspace-write',
  runtime_options: { max_attempt: 3 },
};
const LINES = Array.from({ length: 8 }, (_, index) => JSON.stringify({ seq: index + 1, type: 'agent.message' }));
export const BODY = Buffer.from(`${LINES.join('\n')}\n`);

export const runId = (number) => `run_${String(number).padStart(26, '0')}`;

export const interactionId = (number) => `int_${String(number).padStart(26, '0')}`;

export const isEnded = (number) => !['queued', 'waiting_user'].includes(stateOf(number));

export function stateOf(number) {
  if (number % 10 === 1) return 'waiting_user';
  if (number % 10 === 2) return 'queued';
  return number % 10 === 3 ? 'failed' : 'succeeded';
}

// The database is migrated and nobody has it open. `now`: when the newest run ended, a second after the one before it.
// `onlyEnded`: no run waits or is queued.
export async function fillRuns(file, folder, count, { now = NOW, onlyEnded = false } = {}) {
  const db = await openDatabase(file);
  db.exec('PRAGMA synchronous = OFF; BEGIN');
  const insert = (table, columns) => {
    const names = columns.trim().split(/\s+/);
    return db.prepare(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`);
  };
  const run = insert(
    'runs',
    `run_id request_id request_digest engine spec_json cwd home continues status attempt_number epoch created_at
      updated_at queued_at rasp_seq fcmp_seq ts digest`,
  );
  const label = insert('run_labels', 'run_id key value');
  const runtime = insert('request_interactive_runtime', 'request_id effective_session_timeout_sec updated_at');
  const hasEngine = hasEngineOfQuestions(db);
  const question = insert(
    'interactions',
    `interaction_id run_id attempt_number question_json state asked_at due_at decides ${hasEngine ? 'engine' : ''}`,
  );
  const turn = insert(
    'turns',
    'run_id attempt_number engine profile units parsed fallbacks warnings_json completion reason_code',
  );
  const segment = insert('segments', 'run_id protocol seq_from seq_to ts_from ts_to body packed');
  const delivery = insert(
    'deliveries',
    'delivery_id hook type payload_json run_id rasp_seq digest created_at state tries next_at',
  );
  const digest = '0'.repeat(64);
  for (let number = 0; number < count; number += 1) {
    const id = runId(number);
    const at = now - (count - number) * 1000;
    const status = onlyEnded && !isEnded(number) ? 'succeeded' : stateOf(number);
    const engine = number < FEW * 10 && number % 10 === 1 ? 'gemini' : 'codex';
    const [cwd, home] = [`${folder}/runs/${id}/workspace`, `${folder}/runs/${id}/home`];
    const labels = {
      half: number % 2 === 0 ? 'yes' : 'no',
      ...(number < FEW * 10 && number % 10 === 3 ? { few: 'yes' } : {}),
    };
    const spec = JSON.stringify({ ...SPEC, engine, cwd, home, labels });
    run.run(id, `req_${number}`, digest, engine, spec, cwd, home, 0, status, 1, 1, at, at, at, 8, 8, at, digest);
    for (const [key, value] of Object.entries(labels)) label.run(id, key, value);
    runtime.run(`req_${number}`, 1200, new Date(at).toISOString());
    if (status !== 'queued')
      turn.run(id, 1, engine, `${engine}_ndjson`, 40, 39, 1, '{"ODD_LINE":1}', 'completed', 'ENGINE_SUCCESS');
    for (const protocol of ['rasp', 'fcmp']) segment.run(id, protocol, 1, 8, at, at, BODY, 0);
    if (status === 'waiting_user') {
      const asked = '{"kind":"open_text","prompt":"Which of the two?","options":[]}';
      const decides = number % 20 === 1 ? 1 : 0;
      const values = [interactionId(number), id, 1, asked, 'pending', at, at + HOUR_MS * (decides ? 1e4 : 1), decides];
      question.run(...values, ...(hasEngine ? [engine] : []));
      delivery.run(randomUUID(), 'board', 'run.waiting_user', '{}', id, 8, digest, at, 'pending', 0, at);
    }
  }
  db.exec('COMMIT');
  db.close();
  // Otherwise the first commit of a measurement waits for all of this.
  const written = await open(file, 'r+');
  await written.sync();
  await written.close();
}

// The files of an ended run, like those of a real one.
export function fillFolder(folder, id) {
  const run = join(folder, 'runs', id);
  for (const path of ['attempts/1', 'workspace', 'home/.codex/sessions/2026/01/01'])
    mkdirSync(join(run, path), { recursive: true });
  for (const [path, bytes] of [
    ['attempts/1/stdout.log', BODY],
    ['attempts/1/stderr.log', ''],
    ['rasp.jsonl', BODY],
    ['fcmp.jsonl', BODY],
    ['result.json', '{}\n'],
    ['home/.codex/config.toml', ''],
    ['home/.codex/sessions/2026/01/01/rollout.jsonl', BODY],
  ])
    writeFileSync(join(run, path), bytes);
}

// An earlier version has no such column.
function hasEngineOfQuestions(db) {
  return db.prepare(`SELECT 1 FROM pragma_table_info('interactions') WHERE name = 'engine'`).get() !== undefined;
}
