// An unreadable row is reported by its run id and affects no other: not in a list, not in verify, not at a start.
import { existsSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { logsCommand, verifyCommand } from '../../src/cli/reading/audit.js';
import { doctorCommand } from '../../src/cli/administration/doctor.js';
import { showCommand, watchCommand } from '../../src/cli/reading/show.js';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import { newRun } from '../store/conformance.js';
import { refusalOf } from '../../src/cli/refusal-of.js';
import { listCommand } from '../../src/cli/reading/list.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import { createIo } from '../support/io.js';
import { createRoot, openBench } from '../support/orchestrated.js';
import { serve } from '../support/served.js';

const DAMAGES = [
  ['a request that is no JSON', `spec_json = '{'`],
  ['a request of another form', `spec_json = 'null'`],
  ['a text that is no JSON', `error_json = '{'`],
  ['a number that is none', 'epoch = 4611686018427387904'],
  ['a time that is no number', `created_at = 'x'`],
] as const;

// Three ended runs; the one in the middle is damaged.
async function damage(
  assignment: string,
): Promise<{ root: string; data: string; ids: readonly [string, string, string] }> {
  const root = createRoot();
  const bench = await openBench(root);
  const ids: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    const { run_id: id } = await bench.orchestrator.create({ engine: 'codex', prompt: `[[answer ${count}]]` });
    await bench.orchestrator.waitUntilIdle(id);
    ids.push(id);
  }
  await bench.close();
  const data = join(root, 'data');
  const db = await openDatabase(join(data, 'parley.db'));
  db.prepare(`UPDATE runs SET ${assignment} WHERE run_id = ?`).run(ids[1] ?? '');
  db.close();
  return { root, data, ids: ids as unknown as [string, string, string] };
}

const textOf = (stream: PassThrough): string => (stream.read() as Buffer | null)?.toString() ?? '';

async function command(
  run: (io: ReturnType<typeof createIo>) => Promise<number>,
): Promise<{ code: number; stdout: string; stderr: string }> {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  const code = await run(createIo(streams));
  return { code, stdout: textOf(streams.stdout), stderr: textOf(streams.stderr) };
}

test.each(DAMAGES)('verify names the run and continues, ls lists the others: %s', async (_what, assignment) => {
  const {
    data,
    ids: [first, middle, last],
  } = await damage(assignment);
  const all = await command((io) => verifyCommand(undefined, { data, all: true, json: true }, io));
  const reported = all.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { run_id: string; ok: boolean });
  expect(all.code).toBe(1);
  expect(Object.fromEntries(reported.map(({ run_id: id, ok }) => [id, ok]))).toEqual({
    [first]: true,
    [middle]: false,
    [last]: true,
  });
  const one = await command((io) => verifyCommand(middle.slice(-8), { data }, io));
  expect(one.code).toBe(1);
  expect(one.stdout).toMatch(
    new RegExp(
      `^${middle}: NOT as it was written\\n.*journal.*(error_json|spec_json|created_at|epoch) of run ${middle}`,
    ),
  );
  expect((await command((io) => verifyCommand('last', { data }, io))).code).toBe(0);
  const list = await command((io) => listCommand({ data, limit: 10, quiet: true }, io));
  expect([list.code, list.stdout]).toEqual([0, `${last}\n${first}\n`]);
  expect(list.stderr).toContain(`run ${middle} is not listed because its stored data is damaged`);
});

test.each(DAMAGES)('a server lists the others, and names the damage of this one: %s', async (_what, assignment) => {
  const {
    root,
    ids: [first, middle, last],
  } = await damage(assignment);
  const served = await serve({ root });
  const ask = async (path: string): Promise<unknown> => {
    const response = await served.fetch(path);
    return [response.status, await response.json()];
  };
  expect(await ask('/v1/runs')).toMatchObject([
    200,
    { runs: [{ run_id: last }, { run_id: first }], next_cursor: null },
  ]);
  // Page by page, even if a page has no readable row.
  expect(await ask(`/v1/runs?limit=1&cursor=${last}`)).toEqual([200, { runs: [], next_cursor: middle }]);
  expect(await ask(`/v1/runs?limit=1&cursor=${middle}`)).toMatchObject([
    200,
    { runs: [{ run_id: first }], next_cursor: null },
  ]);
  expect(await ask(`/v1/runs/${middle}`)).toMatchObject([
    200,
    { run_id: middle, engine: 'codex', damage: [expect.stringContaining(middle) as string] },
  ]);
  expect(await ask(`/v1/runs/${first}`)).toMatchObject([200, { run_id: first }]);
  expect(await ask(`/v1/runs/${first}`)).not.toHaveProperty('1.damage');
  expect(await ask(`/v1/runs/${middle}/verify`)).toMatchObject([
    200,
    { run_id: middle, ok: false, checks: [{ name: 'journal', ok: false }] },
  ]);
  expect(await ask(`/v1/runs/${first}/verify`)).toMatchObject([200, { ok: true }]);
  expect(served.logged.join('')).toContain(middle);
  await served.close();
});

test.each(DAMAGES)(
  'a start reports it, ends other interrupted runs and repairs their files: %s',
  async (_what, assignment) => {
    const {
      root,
      data,
      ids: [first, middle, last],
    } = await damage(`${assignment}, status = 'running'`);
    const db = await openDatabase(join(data, 'parley.db'));
    db.prepare(`UPDATE runs SET status = 'running' WHERE run_id = ?`).run(first);
    db.close();
    const short = join(runFolder(data, last).path, 'rasp.jsonl');
    const whole = readFileSync(short);
    truncateSync(short, 100);
    rmSync(join(data, 'exports.clean'));
    const bench = await openBench(root);
    expect(bench.failures.splice(0).map(refusalOf)).toEqual(
      expect.arrayContaining([expect.objectContaining({ code: 'DATA_DIR_UNUSABLE' })]),
    );
    expect((await bench.data.store.loadRun(first))?.status).toBe('failed');
    expect(readFileSync(short).equals(whole)).toBe(true);
    expect(await bench.data.store.listRunIds({ limit: 9 })).toEqual([last, middle, first]);
    await bench.close();
  },
);

test.each([`question_json = '{'`, `due_at = 'x'`])(
  'a question that cannot be read takes no other with it, in lists and in the inbox: %s',
  async (assignment) => {
    const root = createRoot();
    const bench = await openBench(root);
    const ids: string[] = [];
    for (let count = 0; count < 3; count += 1) {
      const { run_id: id } = await bench.orchestrator.create({
        engine: 'codex',
        prompt: '[[ask Which?]][[done 1]]',
        execution_mode: 'interactive',
        permission: 'full',
      });
      await bench.orchestrator.waitUntilIdle(id);
      ids.push(id);
    }
    const [first = '', middle = '', last = ''] = ids;
    await bench.close();
    const data = join(root, 'data');
    const db = await openDatabase(join(data, 'parley.db'));
    db.prepare(`UPDATE interactions SET ${assignment} WHERE run_id = ?`).run(middle);
    db.close();
    const list = await command((io) => listCommand({ data, limit: 10, quiet: true }, io));
    expect([list.code, list.stdout]).toEqual([0, `${last}\n${first}\n`]);
    expect(list.stderr).toContain(`run ${middle} is not listed`);
    expect((await command((io) => verifyCommand(middle, { data }, io))).code).toBe(1);
    const served = await serve({ root });
    served.bench.failures.length = 0;
    expect(await (await served.fetch('/v1/runs')).json()).toMatchObject({
      runs: [{ run_id: last }, { run_id: first }],
    });
    expect((await served.bench.data.store.listPending({ limit: 2 })).map(({ run_id: id }) => id)).toEqual([
      first,
      last,
    ]);
    expect(await (await served.fetch('/v1/interactions')).json()).toMatchObject({
      interactions: [{ run_id: first }, { run_id: last }],
    });
    // Another is answered and continues.
    const [{ interaction_id: id } = { interaction_id: '' }] = await served.bench.data.store.listPending({ limit: 1 });
    await served.bench.orchestrator.reply(first, { interaction_id: id, response: 'this' });
    expect(await served.bench.orchestrator.waitUntilIdle(first)).toMatchObject({ status: 'succeeded' });
    served.bench.failures.length = 0;
    await served.close();
  },
);

test.each(DAMAGES)(
  'a damaged run is shown, exported and deleted, by command and over HTTP: %s',
  async (_what, assignment) => {
    const {
      root,
      data,
      ids: [first, middle, last],
    } = await damage(assignment);
    const shown = await command((io) => showCommand(middle, { data, json: true }, io));
    expect([shown.code, JSON.parse(shown.stdout)]).toMatchObject([
      0,
      { run: { run_id: middle, status: 'succeeded', damage: [expect.stringContaining(middle) as string] } },
    ]);
    const conversation = await command((io) => showCommand(middle, { data }, io));
    expect(conversation).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('1') as string,
      stderr: expect.stringContaining('damaged: ') as string,
    });
    const watched = await command((io) => watchCommand(middle, { data, cursor: 0, follow: true, rasp: true }, io));
    expect([watched.code, watched.stdout.split('\n').length]).toEqual([0, expect.any(Number)]);
    expect(watched.stdout).toContain('lifecycle.turn.ended');
    expect((await command((io) => logsCommand(middle, { data, stream: 'stdout' }, io))).code).toBe(0);
    const served = await serve({ root });
    served.bench.failures.length = 0;
    const ask = (path: string, init?: RequestInit) => served.fetch(`/v1/runs/${middle}${path}`, init);
    for (const path of ['', '/logs', '/result', '/files', '/archive', '/events/history', '/rasp/history'])
      expect([path, (await ask(path)).status]).toEqual([path, 200]);
    expect(await (await ask('/archive')).text()).toContain(`${middle}/rasp.jsonl`);
    expect(await (await ask('/rasp')).text()).toContain('event: end');
    expect((await ask('', { method: 'DELETE' })).status).toBe(204);
    expect((await ask('')).status).toBe(404);
    expect(existsSync(runFolder(data, middle).path)).toBe(false);
    expect(await served.bench.data.store.listRunIds({ limit: 9 })).toEqual([last, first]);
    await served.close();
  },
);

test('a run that waits with a damaged question cannot be answered, and can be deleted', async () => {
  const root = createRoot();
  const bench = await openBench(root);
  const { run_id: id } = await bench.orchestrator.create({
    engine: 'codex',
    prompt: '[[ask Which?]][[done 1]]',
    execution_mode: 'interactive',
    permission: 'full',
  });
  await bench.orchestrator.waitUntilIdle(id);
  await bench.close();
  const data = join(root, 'data');
  const db = await openDatabase(join(data, 'parley.db'));
  db.exec(`UPDATE interactions SET question_json = '['`);
  db.close();
  const served = await serve({ root });
  served.bench.failures.length = 0;
  expect(await (await served.fetch(`/v1/runs/${id}`)).json()).toMatchObject({
    status: 'waiting_user',
    interaction: null,
    damage: [expect.stringContaining('question_json') as string],
  });
  expect((await served.fetch(`/v1/runs/${id}`, { method: 'DELETE' })).status).toBe(204);
  served.bench.failures.length = 0;
  await served.close();
});

test('a queued run that is damaged does not hold up the runs behind it', async () => {
  const root = createRoot();
  const bench = await openBench(root);
  await bench.close();
  const data = await openDataDir(join(root, 'data'), { pid: process.pid });
  const spec = {
    engine: 'codex',
    execution_mode: 'auto',
    prompt: '[[answer 1]]',
    cwd: root,
    home: null,
    permission: 'full',
    runtime_options: {},
    labels: {},
  } as const;
  for (const number of [1, 2])
    await data.store.createRun(
      newRun(number, { run_id: `run_${String(number).padStart(26, '0')}`, spec: { ...spec, cwd: root } }),
    );
  await data.close();
  const db = await openDatabase(join(root, 'data', 'parley.db'));
  db.exec(`UPDATE runs SET spec_json = '{' WHERE request_id = 'req_0001'`);
  db.close();
  const again = await openBench(root, { settings: { recovery: { queued: 'requeue' } } });
  expect(await again.orchestrator.waitUntilIdle(`run_${'2'.padStart(26, '0')}`)).not.toMatchObject({
    status: 'queued',
  });
  again.failures.length = 0;
  await again.close();
});

test.each(['rasp', 'fcmp'] as const)(
  'a broken piece of the %s journal is named; all other events are shown and exported',
  async (protocol) => {
    const root = createRoot();
    const bench = await openBench(root);
    const { run_id: id } = await bench.orchestrator.create({
      engine: 'codex',
      prompt: '[[ask Which?]][[done 1]]',
      execution_mode: 'interactive',
      permission: 'full',
    });
    await bench.orchestrator.waitUntilIdle(id);
    const [pending] = await bench.data.store.listPending({ limit: 1 });
    await bench.orchestrator.reply(id, { interaction_id: pending?.interaction_id ?? '', response: 'this' });
    const { heads } = await bench.orchestrator.waitUntilIdle(id);
    const head = protocol === 'rasp' ? heads.rasp_seq : heads.fcmp_seq;
    const pieces = await bench.data.store.listSegments(id, protocol);
    await bench.close();
    const data = join(root, 'data');
    const broken = pieces[1] ?? { seq_from: 0, seq_to: 0 };
    const db = await openDatabase(join(data, 'parley.db'));
    db.prepare('UPDATE segments SET packed = 7 WHERE run_id = ? AND protocol = ? AND seq_from = ?').run(
      id,
      protocol,
      broken.seq_from,
    );
    db.close();
    const left = head - (broken.seq_to - broken.seq_from + 1);
    const finding = `damaged: ${protocol} events ${broken.seq_from} to ${broken.seq_to}: `;
    for (const follow of [true, false]) {
      const watched = await command((io) =>
        watchCommand(id, { data, cursor: 0, follow, rasp: protocol === 'rasp', json: true }, io),
      );
      expect([watched.code, watched.stdout.trimEnd().split('\n').length]).toEqual([0, left]);
      expect(watched.stderr).toContain(finding);
    }
    if (protocol === 'fcmp')
      expect(await command((io) => showCommand(id, { data }, io))).toMatchObject({
        code: 0,
        stderr: expect.stringContaining(finding) as string,
      });
    const served = await serve({ root });
    served.bench.failures.length = 0;
    const path = protocol === 'rasp' ? 'rasp' : 'events';
    const history = (await (await served.fetch(`/v1/runs/${id}/${path}/history`)).json()) as {
      events: object[];
      damaged: object[];
      next_seq: null;
    };
    expect([history.events.length, history.next_seq]).toEqual([left, null]);
    expect(history.damaged).toMatchObject([{ from_seq: broken.seq_from, to_seq: broken.seq_to }]);
    const stream = await (await served.fetch(`/v1/runs/${id}/${path}`)).text();
    expect(stream).toContain(`event: damaged\ndata: {"from_seq":${broken.seq_from},"to_seq":${broken.seq_to},`);
    expect(stream.match(/^id: /gm)).toHaveLength(left);
    const read: unknown[] = [];
    for await (const event of protocol === 'rasp' ? served.client.rasp(id) : served.client.events(id)) read.push(event);
    expect(read).toHaveLength(left);
    await served.client.delete(id);
    served.bench.failures.length = 0;
    await served.close();
  },
);

test('doctor finds a damaged row and a broken piece, and reports what it checked', async () => {
  const {
    data,
    ids: [first, middle],
  } = await damage(`error_json = '{'`);
  const doctor = async (full: boolean): Promise<Record<string, { level: string; text: string }>> => {
    const { stdout } = await command((io) => doctorCommand({ data, json: true, full }, io));
    const { findings } = JSON.parse(stdout) as { findings: { name: string; level: string; text: string }[] };
    return Object.fromEntries(findings.map(({ name, ...rest }) => [name, rest]));
  };
  expect(await doctor(false)).toMatchObject({
    integrity: { level: 'ok' },
    damage: {
      level: 'missing',
      text: expect.stringMatching(`1 of 3 runs are damaged: ${middle} \\(error_json .*checked all 3 runs`) as string,
    },
  });
  const db = await openDatabase(join(data, 'parley.db'));
  db.prepare('UPDATE runs SET error_json = NULL WHERE run_id = ?').run(middle);
  expect(await doctor(false)).toMatchObject({ damage: { level: 'ok' } });
  db.prepare(
    `UPDATE segments
     SET body = CAST(replace(CAST(body AS TEXT), 'codex', 'other') AS BLOB)
     WHERE packed = 0 AND run_id = ? AND protocol = 'rasp'`,
  ).run(first);
  db.close();
  expect(await doctor(true)).toMatchObject({
    damage: {
      level: 'missing',
      text: expect.stringMatching(`${first} .*digest.*checked all 3 runs with their journals`) as string,
    },
  });
});
