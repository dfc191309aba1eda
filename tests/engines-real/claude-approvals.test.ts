// Approvals of the real Claude Code: a call that needs a person is deferred, its process exits, and a later process
// runs exactly that call after the decision.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { RunRecord } from '../../src/store/store.js';
import { sessionFiles } from '../../src/machine/sessions/find-session.js';
import { seededRandom } from '../support/seeded-random.js';
import { openRealBench, type RealBench } from './real-bench.js';
import type { Person } from './real-person.js';
import { createJob, eventsOf, look, openSite, processesOf, replyJob, settledRun, startWorker } from './real-worker.js';

const INTERACTIVE = { execution_mode: 'interactive', permission: 'read-only' } as const;
const open = (env: Record<string, string> = {}) => openRealBench('claude', { env: () => env });
const linesOf = (folder: string) =>
  existsSync(join(folder, 'count')) ? readFileSync(join(folder, 'count'), 'utf8').split('\n').length - 1 : 0;
const questionOf = async (bench: RealBench, { run_id: id }: RunRecord) => (await bench.pending(id)).question;
const appliedIn = async (bench: RealBench, { run_id: id }: RunRecord) =>
  (await bench.events(id)).filter(({ event }) => event.type === 'interaction.approval.applied');

const COUNT = '[[tool echo once >> count]][[done 1]]';

describe('a deferred command', () => {
  test('is asked with its exact text and folder, and runs once after it was approved', async () => {
    const bench = await open();
    const run = await bench.play(COUNT, INTERACTIVE);
    expect(run.status).toBe('waiting_user');
    expect(await questionOf(bench, run)).toMatchObject({
      kind: 'approval',
      action: { kind: 'command', command: 'echo once >> count', cwd: bench.cwd },
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(linesOf(bench.cwd)).toBe(0);
    const decision = { decision: 'approve', note: 'But only once.' };
    expect(await bench.reply(run.run_id, decision)).toMatchObject({ status: 'succeeded', result: 1 });
    expect(linesOf(bench.cwd)).toBe(1);
    expect(JSON.stringify(bench.model.requests.at(-1)?.body)).toContain('Their note: But only once.');
    expect((await appliedIn(bench, run)).map(({ data }) => data['decision'])).toEqual(['approve']);
  });

  test('never runs after it was declined, and the agent continues', async () => {
    const bench = await open();
    const run = await bench.play(COUNT, INTERACTIVE);
    const decision = { decision: 'decline', note: 'Use a table.' };
    expect(await bench.reply(run.run_id, decision)).toMatchObject({ status: 'succeeded', result: 1 });
    expect(linesOf(bench.cwd)).toBe(0);
    expect(JSON.stringify(bench.model.requests.at(-1)?.body)).toContain('Their note: Use a table.');
    expect(JSON.stringify(bench.model.requests.at(-1)?.body)).toContain('The person declined this call.');
  });

  test('with the decision cancel the turn stops, and the run waits for the person', async () => {
    const bench = await open();
    const run = await bench.play(COUNT, INTERACTIVE);
    const stopped = await bench.reply(run.run_id, { decision: 'cancel' });
    expect(stopped.status).toBe('waiting_user');
    expect(await questionOf(bench, stopped)).toMatchObject({ kind: 'open_text', channel: 'conversation' });
    expect(linesOf(bench.cwd)).toBe(0);
  });

  test('is one of two in the same answer: the other is denied, and asked for again', async () => {
    const bench = await open();
    const run = await bench.play(
      '[[tool echo a >> count]][[beside]][[tool touch other]][[tool touch other]][[done 1]]',
      {
        ...INTERACTIVE,
      },
    );
    expect(await questionOf(bench, run)).toMatchObject({ action: { command: 'echo a >> count' } });
    const next = await bench.reply(run.run_id, { decision: 'approve' });
    expect(linesOf(bench.cwd)).toBe(1);
    expect(existsSync(join(bench.cwd, 'other'))).toBe(false);
    expect(await questionOf(bench, next)).toMatchObject({ action: { command: 'touch other' } });
    expect(await bench.reply(run.run_id, { decision: 'approve' })).toMatchObject({ status: 'succeeded' });
    expect(existsSync(join(bench.cwd, 'other'))).toBe(true);
  });

  test('the same command twice is asked twice', async () => {
    const bench = await open();
    const run = await bench.play(`[[tool echo once >> count]]${COUNT}`, INTERACTIVE);
    const again = await bench.reply(run.run_id, { decision: 'approve' });
    expect(again).toMatchObject({ status: 'waiting_user', attempt_number: 2 });
    expect(linesOf(bench.cwd)).toBe(1);
    expect(await bench.reply(run.run_id, { decision: 'approve' })).toMatchObject({ status: 'succeeded' });
    expect(linesOf(bench.cwd)).toBe(2);
  });

  test('after a change of folder it is asked about, and runs, in the folder of the run', async () => {
    const bench = await open();
    mkdirSync(join(bench.cwd, 'sub'));
    const run = await bench.play(`[[tool cd sub]]${COUNT}`, INTERACTIVE);
    expect(await questionOf(bench, run)).toMatchObject({ action: { cwd: bench.cwd } });
    expect(await bench.reply(run.run_id, { decision: 'approve' })).toMatchObject({ status: 'succeeded' });
    expect([linesOf(bench.cwd), linesOf(join(bench.cwd, 'sub'))]).toEqual([1, 0]);
  });
});

test('reading needs nobody; changes do with read-only, and outside the folder with workspace-write', async () => {
  const bench = await open();
  writeFileSync(join(bench.cwd, 'a.txt'), 'A-CONTENT');
  const reading = '[[tool cat a.txt]][[beside]][[tool ls]][[tool grep A a.txt | wc -l]]';
  const run = await bench.play(`${reading}[[file made.txt]][[done 1]]`, INTERACTIVE);
  expect(JSON.stringify(bench.model.requests.at(-1)?.body)).toContain('A-CONTENT');
  expect(await questionOf(bench, run)).toMatchObject({
    kind: 'approval',
    action: {
      kind: 'tool_call',
      tool: 'Write',
      input: { file_path: join(bench.cwd, 'made.txt'), content: 'made.txt\n' },
    },
  });
  await bench.reply(run.run_id, { decision: 'approve' });
  expect(existsSync(join(bench.cwd, 'made.txt'))).toBe(true);
  const other = { ...INTERACTIVE, permission: 'workspace-write' } as const;
  expect(await bench.play('[[file free.txt]][[done 1]]', other)).toMatchObject({ status: 'succeeded' });
  const outside = await bench.play(`[[patch ${bench.root}/outside.txt]][[done 1]]`, other);
  expect(outside.status).toBe('waiting_user');
  expect(existsSync(join(bench.root, 'outside.txt'))).toBe(false);
  await bench.reply(outside.run_id, { decision: 'approve' });
  expect(existsSync(join(bench.root, 'outside.txt'))).toBe(true);
});

test('a proxy in the environment does not stop Claude Code from asking', async () => {
  const nowhere = 'http://127.0.0.1:9';
  const bench = await open({ HTTP_PROXY: nowhere, http_proxy: nowhere, NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' });
  expect((await bench.play(COUNT, INTERACTIVE)).status).toBe('waiting_user');
});

test('an auto run defers nothing: Claude Code denies the call', async () => {
  const bench = await open();
  expect(await bench.play(COUNT, { permission: 'read-only' })).toMatchObject({ status: 'succeeded', result: 1 });
  expect(linesOf(bench.cwd)).toBe(0);
});

test('a question and a deferred call never wait together', async () => {
  const bench = await open();
  const run = await bench.play('[[ask Which?]][[beside]][[tool touch x]][[tool touch x]][[done 1]]', INTERACTIVE);
  expect(await questionOf(bench, run)).toMatchObject({ kind: 'open_text', prompt: 'Which?', channel: 'tool' });
});

test('everything is killed while an approval waits: the next start asks no process, and runs it once', async () => {
  const person: Person = await openSite('claude');
  let worker = await startWorker(person, createJob(person, COUNT, { permission: 'read-only' }));
  const { runId } = worker;
  expect(await settledRun(person, runId)).toMatchObject({ status: 'waiting_user' });
  expect(processesOf(person, runId)).toEqual([]);
  await worker.kill();
  worker = await startWorker(person, await replyJob(person, runId, { decision: 'approve' }));
  expect(await settledRun(person, runId)).toMatchObject({ status: 'succeeded', attempt_number: 2 });
  expect(linesOf(person.cwd)).toBe(1);
  expect(
    (await eventsOf(person, runId)).filter(({ event }) => event.type === 'interaction.approval.applied'),
  ).toHaveLength(1);
  expect(await look(person, ({ store }) => store.loadPendingInteraction(runId))).toBeNull();
});

test('a call that was changed while it waited is asked about again, and does not run', async () => {
  const bench = await open();
  const run = await bench.play(COUNT, INTERACTIVE);
  const handle = await bench.data.store.loadHandle(run.request_id);
  for (const file of handle ? await sessionFiles(handle) : [])
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll('echo once >>', 'echo evil >>'));
  const again = await bench.reply(run.run_id, { decision: 'approve' });
  expect(again.status).toBe('waiting_user');
  expect(await questionOf(bench, again)).toMatchObject({ action: { command: 'echo evil >> count' } });
  expect(linesOf(bench.cwd)).toBe(0);
  expect(await appliedIn(bench, run)).toEqual([]);
});

test('a run that was canceled while an approval waited continues with its new prompt, and can ask again', async () => {
  const bench = await open();
  const run = await bench.play(COUNT, INTERACTIVE);
  await bench.orchestrator.cancel(run.run_id);
  const { run_id: id } = await bench.orchestrator.continueFrom(run.run_id, {
    prompt: '[[tool touch other]][[done 2]]',
  });
  const next = await bench.waitUntilIdle(id);
  expect(await questionOf(bench, next)).toMatchObject({ action: { command: 'touch other' } });
  expect(await bench.reply(id, { decision: 'approve' })).toMatchObject({ status: 'succeeded', result: 2 });
  expect([existsSync(join(bench.cwd, 'other')), linesOf(bench.cwd)]).toEqual([true, 0]);
});

// More of them: PARLEY_KILLS=100.
const KILLS = Number(process.env['PARLEY_KILLS'] ?? 2);
const LATEST_MS = 2000;

test(
  'killed at any moment after the decision, the call runs at most once, and the run has an end or waits',
  async () => {
    const random = seededRandom(Number(process.env['PARLEY_SEED'] ?? 20261119));
    const seen: string[] = [];
    for (let kill = 0; kill < KILLS; kill += 1) {
      const person = await openSite('claude');
      const first = await startWorker(person, createJob(person, COUNT, { permission: 'read-only' }));
      const { runId } = first;
      await settledRun(person, runId);
      await first.kill();
      const second = await startWorker(person, await replyJob(person, runId, { decision: 'approve' }));
      await pause(random(LATEST_MS));
      await second.kill();
      const third = await startWorker(person, createJob(person, '[[done 1]]'));
      const run = await settledRun(person, runId);
      await settledRun(person, third.runId);
      const applied = (await eventsOf(person, runId)).filter(
        ({ event }) => event.type === 'interaction.approval.applied',
      ).length;
      const ran = linesOf(person.cwd);
      seen.push(`${run.status} ${run.error?.code ?? ''} applied ${applied} ran ${ran}`);
      expect(applied).toBeLessThanOrEqual(1);
      expect(ran).toBeLessThanOrEqual(applied);
      if (run.status === 'failed') expect(run.error?.code).toBe('ORCHESTRATOR_RESTART_INTERRUPTED');
      else expect(run.status).toBe('succeeded');
      expect(processesOf(person, runId)).toEqual([]);
      await third.kill();
    }
    if (KILLS > 10) console.log(seen.toSorted().join('\n'));
  },
  60_000 + KILLS * 20_000,
);
