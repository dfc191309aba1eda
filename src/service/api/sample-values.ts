// The ids, runs, questions and events that the examples of the API and its webhooks share.
export const RUN = 'run_01KA6T0B3M8Q5W9X2Z7C4V6N1D';
export const NEXT_RUN = 'run_01KA6T3H7R2F8G4J9K5L1P0S6T';
export const INTERACTION = 'int_01KA6T0F4N9R6X1Y3A8D5W7P2E';
export const SESSION = 'ses_01KA6T0J7R3T9Z4A6D2G8Y1S5H';
export const DIGEST = '9f2c4e1ab0d73865f1e2c3b4a5968778695a4b3c2d1e0f9f8e7d6c5b4a392817';
export const ASKED = '2026-01-31T12:00:42.000Z';
export const RESULT = { summary: 'Two tests were fixed.' };

export const QUESTION = {
  kind: 'choose_one',
  prompt: 'Which database should the tests use?',
  options: [
    { label: 'SQLite', value: 'sqlite' },
    { label: 'PostgreSQL', value: 'postgres', description: 'As in production' },
  ],
  default: 'sqlite',
  channel: 'tool',
};

export const PENDING = {
  interaction_id: INTERACTION,
  run_id: RUN,
  attempt_number: 1,
  state: 'pending',
  question: QUESTION,
  asked_at: ASKED,
  due_at: '2026-01-31T12:20:42.000Z',
  overdue: false,
  answer: null,
};

export const LABELS = { team: 'core' };
export const PROMPT = 'Fix the failing tests';

export const RUNNING = {
  run_id: RUN,
  request_id: 'order-17',
  status: 'running',
  engine: 'codex',
  execution_mode: 'interactive',
  attempt_number: 1,
  prompt: PROMPT,
  cwd: '/srv/shop',
  model: null,
  permission: 'workspace-write',
  labels: LABELS,
  continue_from: null,
  fork_from: null,
  retry_of: null,
  created_at: '2026-01-31T12:00:00.000Z',
  updated_at: '2026-01-31T12:00:01.000Z',
  waited_ms: 0,
  silent_since: null,
  error: null,
  result: null,
  rasp_seq: 3,
  fcmp_seq: 2,
  digest: DIGEST,
  interaction: null,
};

export const WAITING = {
  ...RUNNING,
  status: 'waiting_user',
  updated_at: ASKED,
  rasp_seq: 42,
  fcmp_seq: 17,
  interaction: PENDING,
};

export const FCMP_EVENT = {
  protocol_version: 'fcmp/1.0',
  run_id: RUN,
  seq: 5,
  ts: '2026-01-31T12:00:05.000Z',
  attempt_number: 1,
  rasp_seq: 9,
  type: 'assistant.message.final',
  data: { message_id: 'item_2', text: 'I will run the tests first.' },
};

export const RASP_EVENT = {
  protocol_version: 'rasp/1.0',
  run_id: RUN,
  seq: 9,
  ts: '2026-01-31T12:00:05.000Z',
  attempt_number: 1,
  source: { engine: 'codex', parser: 'codex_ndjson', confidence: 1 },
  event: { category: 'agent', type: 'agent.message.final' },
  data: { text: 'I will run the tests first.' },
  correlation: { session_id: '01a1e096-fc57-7740-ae29-80a07f5dafee', item_id: 'item_2' },
  raw_ref: { attempt_number: 1, stream: 'stdout', byte_from: 512, byte_to: 640, encoding: 'utf-8' },
};

export const VERIFICATION = {
  run_id: RUN,
  ok: true,
  checks: [{ name: 'order', ok: true, finding: '42 events without a gap' }],
};
