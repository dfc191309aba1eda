// Rows that are JSON, but not of the shape of responses: each is damage of its own row and breaks no list.
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { replyCommand } from '../../src/cli/conversation/reply.js';
import { openDatabase, type Database } from '../../src/store/sqlite/open-database.js';
import { createIo } from '../support/io.js';
import { createRoot, openBench } from '../support/orchestrated.js';
import { serve } from '../support/served.js';

const NESTED = `{"kind":"open_text","prompt":"x","options":[],"default":${'['.repeat(5000)}${']'.repeat(5000)}}`;
const LARGE = `{"kind":"choose_one","prompt":"x","options":[${'null,'.repeat(5000)}null]}`;
const QUESTIONS = [
  '{"kind":"zzz","prompt":"x","options":[]}',
  '{"kind":"choose_one","prompt":"x","options":[null]}',
  '{"kind":"choose_one","prompt":"x","options":[{"label":5,"value":1}]}',
  '{"kind":"choose_one","prompt":"x"}',
  '{"kind":"fill_fields","prompt":"x","options":[],"fields":[null]}',
  '{"kind":"approval","prompt":"x","options":[],"action":5}',
  LARGE,
  NESTED,
];
const SPECS = [
  '$.model',
  '$.retry_of',
  '$.continue_from',
  '$.fork_from',
  '$.sticky',
  '$.runtime_options',
  '$.labels.team',
];
const COLUMNS = ['attempt_number = 0', 'created_at = 8000000000000000', 'ts = 8000000000000000'];

let root = '';
let served: Awaited<ReturnType<typeof serve>>;
let db: Database;
const ids: string[] = [];

beforeAll(async () => {
  root = createRoot();
  const bench = await openBench(root);
  for (let count = 0; count < 3; count += 1) {
    const { run_id: id } = await bench.orchestrator.create({
      engine: 'codex',
      prompt: '[[ask Which?]][[done 1]]',
      execution_mode: 'interactive',
      permission: 'full',
      labels: { team: 'a' },
    });
    expect(await bench.orchestrator.waitUntilIdle(id)).toMatchObject({ status: 'waiting_user' });
    ids.push(id);
  }
  await bench.close();
  served = await serve({ root });
  db = await openDatabase(join(root, 'data', 'parley.db'));
});

afterAll(async () => {
  db.close();
  served.bench.failures.length = 0;
  await served.close();
});

// Changes one row of the middle run, and restores it afterwards.
async function changed(table: 'runs' | 'interactions', assignment: string, work: () => Promise<void>): Promise<void> {
  db.exec('PRAGMA foreign_keys = OFF');
  const before = db.prepare(`SELECT * FROM ${table} WHERE run_id = ?`).get(ids[1] ?? '') as Record<string, never>;
  const key = table === 'runs' ? 'request_id' : 'interaction_id';
  db.prepare(`UPDATE ${table} SET ${assignment} WHERE ${key} = ?`).run(before[key] ?? '');
  try {
    await work();
  } finally {
    const columns = Object.keys(before);
    db.prepare(`UPDATE ${table} SET ${columns.map((name) => `${name} = ?`).join(', ')} WHERE ${key} = ?`).run(
      ...Object.values(before),
      before[key] ?? '',
    );
  }
}

async function ask(path: string): Promise<unknown> {
  const response = await served.fetch(path);
  return [response.status, await response.json()];
}

async function expectOthersListed(): Promise<void> {
  const [first, , last] = ids;
  expect(await ask('/v1/runs')).toMatchObject([200, { runs: [{ run_id: last }, { run_id: first }] }]);
  expect(await ask('/v1/interactions')).toMatchObject([200, { interactions: [{ run_id: first }, { run_id: last }] }]);
}

test.each(QUESTIONS.map((text) => [text.slice(0, 80), text]))(
  'an odd question is damage of its run, and breaks no list: %s',
  async (_name, text) => {
    await changed('interactions', `question_json = '${text}'`, async () => {
      await expectOthersListed();
      expect(await ask(`/v1/runs/${ids[1]}`)).toMatchObject([
        200,
        { status: 'waiting_user', interaction: null, damage: [expect.stringContaining('question_json')] },
      ]);
      expect(await ask(`/v1/runs/${ids[1]}/interaction`)).toMatchObject([
        500,
        { error: { code: 'DATA_DIR_UNUSABLE' } },
      ]);
    });
  },
);

test.each(SPECS)('a request with an odd %s is damage of its run, and breaks no list', async (path) => {
  await changed('runs', `spec_json = json_set(spec_json, '${path}', 5)`, async () => {
    await expectOthersListed();
    expect(await ask(`/v1/runs/${ids[1]}`)).toMatchObject([
      200,
      { run_id: ids[1], damage: [expect.stringContaining('spec_json')] },
    ]);
  });
});

test.each(['attempt_number = 4611686018427387904', 'due_at = 9000000000000000000'])(
  'a question with %s fails neither lists nor figures',
  async (assignment) => {
    await changed('interactions', assignment, async () => {
      await expectOthersListed();
      for (const path of ['/metrics', '/v1/sessions', '/v1/interactions?overdue=true'])
        expect([path, (await served.fetch(path)).status]).toEqual([path, 200]);
    });
  },
);

test('a large request with an odd prompt breaks no list', async () => {
  const spec = `json_set(spec_json, '$.prompt', 5, '$.more', '${'x'.repeat(20_000)}')`;
  await changed('runs', `spec_json = ${spec}`, expectOthersListed);
});

test.each(COLUMNS)('a run with %s breaks no list', async (assignment) => {
  await changed('runs', assignment, expectOthersListed);
});

test('members that a newer version added are no damage', async () => {
  const question =
    `json_set(question_json, '$.newer', json('{"a":[1]}'), '$.options', ` +
    `json('[{"label":"a","value":1,"newer":2}]'))`;
  await changed('interactions', `question_json = ${question}`, async () => {
    await changed(
      'runs',
      `spec_json = json_set(spec_json, '$.newer', 5), error_json = '{"code":"INTERNAL","message":"m","newer":5}'`,
      async () => {
        expect(await ask('/v1/runs')).toMatchObject([
          200,
          { runs: [{}, { run_id: ids[1], error: { code: 'INTERNAL', message: 'm' } }, {}] },
        ]);
        expect(await ask('/v1/interactions')).toMatchObject([
          200,
          { interactions: [{}, { question: { newer: { a: [1] }, options: [{ newer: 2 }] } }, {}] },
        ]);
        expect(await ask(`/v1/runs/${ids[1]}`)).not.toHaveProperty('1.damage');
      },
    );
  });
});

test('reply names the damage of a question instead of failing on it', async () => {
  await changed('interactions', `question_json = '${QUESTIONS[1]}'`, async () => {
    const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
    await expect(
      replyCommand(ids[1] ?? '', { text: 'a', data: join(root, 'data') }, createIo(streams)),
    ).rejects.toThrow(/question_json of question/);
  });
});

test('a run whose id was changed breaks no list', async () => {
  db.exec('PRAGMA foreign_keys = OFF');
  db.prepare(`UPDATE runs SET run_id = 'x' WHERE run_id = ?`).run(ids[1] ?? '');
  await expectOthersListed();
});
