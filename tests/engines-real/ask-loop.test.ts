// The whole promise on the real CLIs: ask, park without a process, lose everything but what is stored, answer, go on in a new
// process with the same conversation. Twice in one run.
import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sessionFiles } from '../../src/host/find-session.js';
import type { RunRecord } from '../../src/store/store.js';
import { openRealBench, REAL_ENGINES, type RealBench } from './real-bench.js';

const questionOf = async (bench: RealBench, { run_id: id }: RunRecord) => (await bench.data.store.loadPending(id))?.question;

describe.each(REAL_ENGINES)('%s', (engine) => {
  test('asks, waits without a process, survives the end of everything, and goes on with the same conversation, twice', async () => {
    let bench = await openRealBench(engine);
    let run = await bench.play('Set it up. [[tool echo first]][[ask Which database?|Postgres|SQLite]][[tool echo second]][[ask And which port?]][[done {"ok":true}]]', { execution_mode: 'interactive' });
    expect(run).toMatchObject({ status: 'waiting_user', attempt_number: 1 });
    expect(await questionOf(bench, run)).toMatchObject({ kind: 'choose_one', prompt: 'Which database?', channel: 'tool', options: [{ label: 'Postgres' }, { label: 'SQLite' }] });
    const session = (await bench.data.store.loadHandle(run.request_id))?.handle_value;

    bench = await bench.reopen();
    run = await bench.reply(run.run_id, 'Postgres, please');
    expect(run).toMatchObject({ status: 'waiting_user', attempt_number: 2 });
    expect(await questionOf(bench, run)).toMatchObject({ kind: 'open_text', prompt: 'And which port?' });
    // The service was told everything again: the request, the question, the answer.
    const sent = JSON.stringify(bench.model.requests.at(-1)?.body);
    for (const words of ['Set it up.', 'Which database?', 'Postgres, please']) expect(sent).toContain(words);

    bench = await bench.reopen();
    run = await bench.reply(run.run_id, '5432');
    expect(run).toMatchObject({ status: 'succeeded', attempt_number: 3, result: { ok: true } });
    const last = JSON.stringify(bench.model.requests.at(-1)?.body);
    for (const words of ['Set it up.', 'Postgres, please', 'And which port?', '5432']) expect(last).toContain(words);
    const bound = (await bench.events(run.run_id)).filter(({ event }) => event.type === 'lifecycle.session.bound').map(({ data }) => data['session_id']);
    expect(bound).toEqual([session, session, session]);
    const warnings = (await bench.events(run.run_id)).filter(({ data }) => ['ASK_TOOL_NOT_LISTED', 'ASK_WITNESS_MISSING', 'SESSION_ID_CHANGED'].includes(String(data['code'])));
    expect(warnings).toEqual([]);
  });

  test('a question in the last message is heard too, where the tool is not used', async () => {
    const bench = await openRealBench(engine);
    const run = await bench.play('[[answer I need to know. {"ask_user":{"prompt":"Which one?","options":["x","y"]}}]]', { execution_mode: 'interactive' });
    expect(run.status).toBe('waiting_user');
    expect(await questionOf(bench, run)).toMatchObject({ kind: 'choose_one', prompt: 'Which one?', channel: 'envelope' });
  });

  test('an auto run is given no question tool', async () => {
    const bench = await openRealBench(engine);
    await bench.play('[[ask Which?]][[done 1]]');
    expect(JSON.stringify(bench.model.requests)).not.toContain('ask_human');
  });

  test('a session that is gone fails the run with SESSION_RESUME_FAILED, and nothing new is begun', async () => {
    const bench = await openRealBench(engine);
    const run = await bench.play('[[ask Which?]][[file never.txt]][[done 1]]', { execution_mode: 'interactive' });
    expect(run.status).toBe('waiting_user');
    const handle = await bench.data.store.loadHandle(run.request_id);
    const files = handle ? sessionFiles(handle) : [];
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) rmSync(file);
    const asked = bench.model.requests.length;
    expect(await bench.reply(run.run_id, 'A')).toMatchObject({ status: 'failed', error: { code: 'SESSION_RESUME_FAILED' } });
    expect(existsSync(join(bench.cwd, 'never.txt'))).toBe(false);
    expect(bench.model.requests.length).toBe(asked);
  });

  test('a session id that nobody knows fails the run with SESSION_RESUME_FAILED, and nothing new is begun', async () => {
    const bench = await openRealBench(engine);
    const run = await bench.play('[[ask Which?]][[file never.txt]][[done 1]]', { execution_mode: 'interactive' });
    const handle = await bench.data.store.loadHandle(run.request_id);
    if (!handle) throw new Error('the run has a session');
    // As if the stored one had been changed.
    const other = { ...handle, handle_value: engine === 'opencode' ? 'ses_e1f66449dffeX9p6f24X5ABzIV' : '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c' };
    await bench.data.store.commit({ run_id: run.run_id, expect: { status: run.status, epoch: run.epoch, rasp_seq: run.heads.rasp_seq }, now: run.updated_at, handle: other });
    const asked = bench.model.requests.length;
    expect(await bench.reply(run.run_id, 'A')).toMatchObject({ status: 'failed', error: { code: 'SESSION_RESUME_FAILED' } });
    expect(bench.model.requests.length).toBe(asked);
    expect(existsSync(join(bench.cwd, 'never.txt'))).toBe(false);
  });

  test('a working folder that is another one now is refused, and nothing is executed', async () => {
    const bench = await openRealBench(engine);
    const run = await bench.play('[[ask Which?]][[file never.txt]][[done 1]]', { execution_mode: 'interactive' });
    renameSync(bench.cwd, `${bench.cwd}-moved`);
    const after = await bench.reply(run.run_id, 'A');
    expect(after.status).toBe('failed');
    expect(readdirSync(`${bench.cwd}-moved`)).not.toContain('never.txt');
  });
});
