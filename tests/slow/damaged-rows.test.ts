// A row that cannot be read is told by the id of its run, and takes no other with it: not in a list, not in verify, not at a start.
import { readFileSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { verifyCommand } from '../../src/cli/audit.js';
import { refusalOf } from '../../src/cli/refusal-of.js';
import { listCommand } from '../../src/cli/list.js';
import { runFolder } from '../../src/orchestrator/run-folder.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import { createIo } from '../support/io.js';
import { createRoot, openBench } from '../support/orchestrated.js';
import { serve } from '../support/served.js';

const DAMAGES = [
  ['a text that is no JSON', `error_json = '{'`],
  ['a number that is none', 'epoch = 4611686018427387904'],
  ['a time that is no number', `created_at = 'x'`],
] as const;

// Three ended runs; the one in the middle is damaged.
async function damage(assignment: string): Promise<{ root: string; data: string; ids: readonly [string, string, string] }> {
  const root = createRoot();
  const bench = await openBench(root);
  const ids: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    const { run_id: id } = await bench.orchestrator.create({ engine: 'codex', prompt: `[[answer ${count}]]` });
    await bench.orchestrator.settled(id);
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

async function command(run: (io: ReturnType<typeof createIo>) => Promise<number>): Promise<{ code: number; stdout: string; stderr: string }> {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  const code = await run(createIo(streams));
  return { code, stdout: textOf(streams.stdout), stderr: textOf(streams.stderr) };
}

test.each(DAMAGES)('verify names the run and goes on, ls lists the others: %s', async (_what, assignment) => {
  const { data, ids: [first, middle, last] } = await damage(assignment);
  const all = await command((io) => verifyCommand(undefined, { data, all: true, json: true }, io));
  const told = all.stdout.trimEnd().split('\n').map((line) => JSON.parse(line) as { run_id: string; ok: boolean });
  expect(all.code).toBe(1);
  expect(Object.fromEntries(told.map(({ run_id: id, ok }) => [id, ok]))).toEqual({ [first]: true, [middle]: false, [last]: true });
  const one = await command((io) => verifyCommand(middle.slice(-8), { data }, io));
  expect(one.code).toBe(1);
  expect(one.stdout).toMatch(new RegExp(`^${middle}: NOT as it was written\\n.*journal.*((error_json|created_at) of run ${middle}|too large)`));
  expect((await command((io) => verifyCommand('last', { data }, io))).code).toBe(0);
  const list = await command((io) => listCommand({ data, limit: 10, quiet: true }, io));
  expect([list.code, list.stdout]).toEqual([0, `${last}\n${first}\n`]);
  expect(list.stderr).toContain(`run ${middle} is left out, what is stored of it is damaged`);
});

test.each(DAMAGES)('a server lists the others, and says of this one what it is: %s', async (_what, assignment) => {
  const { root, ids: [first, middle, last] } = await damage(assignment);
  const served = await serve({ root });
  const ask = async (path: string): Promise<unknown> => {
    const response = await served.fetch(path);
    return [response.status, await response.json()];
  };
  expect(await ask('/v1/runs')).toMatchObject([200, { runs: [{ run_id: last }, { run_id: first }], next_cursor: null }]);
  // Page by page, also where a page has none that can be read.
  expect(await ask(`/v1/runs?limit=1&cursor=${last}`)).toEqual([200, { runs: [], next_cursor: middle }]);
  expect(await ask(`/v1/runs?limit=1&cursor=${middle}`)).toMatchObject([200, { runs: [{ run_id: first }], next_cursor: null }]);
  expect(await ask(`/v1/runs/${middle}`)).toMatchObject([500, { error: { code: 'DATA_DIR_UNUSABLE' } }]);
  expect(await ask(`/v1/runs/${middle}/verify`)).toMatchObject([200, { run_id: middle, ok: false, checks: [{ name: 'journal', ok: false }] }]);
  expect(await ask(`/v1/runs/${first}/verify`)).toMatchObject([200, { ok: true }]);
  expect(served.logged.join('')).toContain(middle);
  await served.close();
});

test.each(DAMAGES)('a start tells of it, ends what else was cut off, and makes the files of the others whole: %s', async (_what, assignment) => {
  const { root, data, ids: [first, middle, last] } = await damage(`${assignment}, status = 'running'`);
  const db = await openDatabase(join(data, 'parley.db'));
  db.prepare(`UPDATE runs SET status = 'running' WHERE run_id = ?`).run(first);
  db.close();
  const short = join(runFolder(data, last).path, 'rasp.jsonl');
  const whole = readFileSync(short);
  truncateSync(short, 100);
  rmSync(join(data, 'exports.clean'));
  const bench = await openBench(root);
  expect(bench.failures.splice(0).map(refusalOf)).toEqual(expect.arrayContaining([expect.objectContaining({ code: 'DATA_DIR_UNUSABLE' })]));
  expect((await bench.data.store.loadRun(first))?.status).toBe('failed');
  expect(readFileSync(short).equals(whole)).toBe(true);
  expect(await bench.data.store.listRunIds({ limit: 9 })).toEqual([last, middle, first]);
  await bench.close();
});

test.each([`question_json = '{'`, `due_at = 'x'`])('a question that cannot be read takes no other with it, in lists and in the inbox: %s', async (assignment) => {
  const root = createRoot();
  const bench = await openBench(root);
  const ids: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    const { run_id: id } = await bench.orchestrator.create({ engine: 'codex', prompt: '[[ask Which?]][[done 1]]', execution_mode: 'interactive', permission: 'full' });
    await bench.orchestrator.settled(id);
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
  expect(list.stderr).toContain(`run ${middle} is left out`);
  expect((await command((io) => verifyCommand(middle, { data }, io))).code).toBe(1);
  const served = await serve({ root });
  served.bench.failures.length = 0;
  expect(await (await served.fetch('/v1/runs')).json()).toMatchObject({ runs: [{ run_id: last }, { run_id: first }] });
  expect((await served.bench.data.store.listPending({ limit: 2 })).map(({ run_id: id }) => id)).toEqual([first, last]);
  expect(await (await served.fetch('/v1/interactions')).json()).toMatchObject({ interactions: [{ run_id: first }, { run_id: last }] });
  // Another is answered and goes on.
  const [{ interaction_id: id } = { interaction_id: '' }] = await served.bench.data.store.listPending({ limit: 1 });
  await served.bench.orchestrator.reply(first, { interaction_id: id, response: 'this' });
  expect(await served.bench.orchestrator.settled(first)).toMatchObject({ status: 'succeeded' });
  served.bench.failures.length = 0;
  await served.close();
});
