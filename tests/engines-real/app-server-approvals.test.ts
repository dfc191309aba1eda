// Approvals and questions of runs on the app-server of the real Codex, in the process that asked.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Json } from '../../src/kernel/json.js';
import { processesOf } from '../support/orchestrated.js';
import type { RealBench } from './real-bench.js';
import {
  ASKS,
  dataOf,
  expectNoProcess,
  expectSameParsed,
  linesIn,
  of,
  openResidents,
  sentTo,
  spawnedIn,
} from './real-resident.js';

const SIDE = 'echo done >> side.txt';
const side = (bench: RealBench) => linesIn(bench.cwd, 'side.txt');

// Runs up to the question for permission.
async function ask(bench: RealBench, prompt: string) {
  const asked = await bench.play(prompt, ASKS);
  expect(asked).toMatchObject({ status: 'waiting_user', attempt_number: 1 });
  const { question } = await bench.pending(asked.run_id);
  expect(question).toMatchObject({
    kind: 'approval',
    channel: 'native',
    digest: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  expect(processesOf(asked.run_id)).not.toEqual([]);
  return { runId: asked.run_id, question };
}

async function expectEndsWell(bench: RealBench, runId: string): Promise<void> {
  const events = await bench.events(runId);
  expect(processesOf(runId)).toEqual([]);
  expect(spawnedIn(events)).toHaveLength(1);
  expect(dataOf(events, 'diagnostic.parser.warning').filter(({ code }) => code !== 'STDERR_TEXT')).toEqual([]);
  expectSameParsed(bench.data.path, runId, events);
}

describe('a command that asks for permission', () => {
  test('runs once when it is approved; the same again is asked again', async () => {
    const bench = await openResidents();
    const { runId, question } = await ask(
      bench,
      `[[answer First.]] [[approve ${SIDE}]] [[approve ${SIDE}]] [[done 7]]`,
    );
    expect(question).toMatchObject({ action: { kind: 'command', command: `/bin/bash -lc '${SIDE}'`, cwd: bench.cwd } });
    expect(side(bench)).toEqual([]);
    expect(await bench.reply(runId, { decision: 'approve' })).toMatchObject({
      status: 'waiting_user',
      attempt_number: 2,
    });
    expect(side(bench)).toEqual(['done']);
    expect((await bench.pending(runId)).question).toMatchObject({ kind: 'approval', digest: question.digest });
    expect(await bench.reply(runId, { decision: 'approve' })).toMatchObject({ status: 'succeeded', result: 7 });
    expect(side(bench)).toEqual(['done', 'done']);
    const events = await bench.events(runId);
    const applied = of(events, 'interaction.approval.applied');
    const ran = of(events, 'tool.call.completed');
    expect(applied.map(({ data }) => [data['decision'], data['digest']])).toEqual([
      ['approve', question.digest],
      ['approve', question.digest],
    ]);
    expect(ran.map(({ data }) => [data['status'], data['exit_code']])).toEqual([
      ['completed', 0],
      ['completed', 0],
    ]);
    expect(ran.map(({ seq }, index) => seq > (applied[index]?.seq ?? Infinity))).toEqual([true, true]);
    await expectEndsWell(bench, runId);
  });

  test('is not asked again in that process when it is approved for the session; another one is', async () => {
    const bench = await openResidents();
    const { runId } = await ask(
      bench,
      `[[approve ${SIDE}]] [[approve ${SIDE}]] [[approve echo other >> side.txt]] [[done 7]]`,
    );
    expect(await bench.reply(runId, { decision: 'approve_for_session' })).toMatchObject({ status: 'waiting_user' });
    expect(side(bench)).toEqual(['done', 'done']);
    expect((await bench.pending(runId)).question).toMatchObject({
      action: { command: "/bin/bash -lc 'echo other >> side.txt'" },
    });
    expect(await bench.reply(runId, { decision: 'decline' })).toMatchObject({ status: 'succeeded', result: 7 });
    expect(side(bench)).toEqual(['done', 'done']);
    await expectEndsWell(bench, runId);
  });

  test('never runs when it is declined, and the turn continues', async () => {
    const bench = await openResidents();
    const { runId } = await ask(bench, `[[approve ${SIDE}]] [[tool echo beside >> beside.txt]] [[done 7]]`);
    expect(await bench.reply(runId, { decision: 'decline' })).toMatchObject({
      status: 'succeeded',
      result: 7,
      attempt_number: 2,
    });
    expect(side(bench)).toEqual([]);
    const events = await bench.events(runId);
    expect(dataOf(events, 'tool.call.completed')[0]).toMatchObject({ status: 'declined' });
    expect(sentTo(bench)).toContain('rejected by user');
    await expectEndsWell(bench, runId);
  });

  test('never runs when the turn is stopped; the run waits for the next message and continues with it', async () => {
    const bench = await openResidents();
    const { runId } = await ask(bench, `[[approve ${SIDE}]] [[answer Never said.]]`);
    expect(await bench.reply(runId, { decision: 'cancel' })).toMatchObject({
      status: 'waiting_user',
      attempt_number: 2,
    });
    expect((await bench.pending(runId)).question).toMatchObject({ kind: 'open_text', channel: 'conversation' });
    expect(side(bench)).toEqual([]);
    const requests = bench.model.requests.length;
    expect(await bench.reply(runId, 'Do something else. [[done 8]]')).toMatchObject({
      status: 'succeeded',
      result: 8,
      attempt_number: 3,
    });
    expect(bench.model.requests.length).toBeGreaterThan(requests);
    expect(side(bench)).toEqual([]);
    const events = await bench.events(runId);
    expect(dataOf(events, 'lifecycle.turn.ended')[1]).toMatchObject({ completion: { reason_code: 'STOPPED_BY_USER' } });
    expect(JSON.stringify(bench.model.requests.at(-1)?.body)).not.toContain('Never said.","');
    await expectEndsWell(bench, runId);
  });

  test('keeps waiting after a reply that is not a decision', async () => {
    const bench = await openResidents();
    const { runId, question } = await ask(bench, `[[approve ${SIDE}]] [[done 7]]`);
    const { interaction_id: id } = await bench.pending(runId);
    const bogus: Json[] = [
      { decision: true },
      'APPROVE',
      { decision: 'accept' },
      null,
      'approve',
      true,
      ['approve'],
      { decision: ['approve'] },
      { Decision: 'approve' },
      {},
    ];
    for (const response of bogus) {
      await expect(
        bench.orchestrator.reply(runId, { interaction_id: id, response }),
        JSON.stringify(response),
      ).rejects.toMatchObject({ code: 'APPROVAL_INVALID' });
    }
    expect(await bench.waitUntilIdle(runId)).toMatchObject({ status: 'waiting_user', attempt_number: 1 });
    expect(await bench.pending(runId)).toMatchObject({
      interaction_id: id,
      state: 'pending',
      question: { digest: question.digest },
    });
    // Other processes come and go next to it.
    expect(processesOf(runId)).toEqual(expect.arrayContaining(spawnedIn(await bench.events(runId))));
    expect(side(bench)).toEqual([]);
    expect(await bench.reply(runId, { decision: 'approve' })).toMatchObject({ status: 'succeeded', result: 7 });
    expect(side(bench)).toEqual(['done']);
    await expectEndsWell(bench, runId);
  });

  test.each([
    ['approve', ['done']],
    ['decline', []],
  ] as const)('passes the note of the decision (%s) to the agent, once', async (decision, ran) => {
    const bench = await openResidents();
    const { runId } = await ask(bench, `[[approve ${SIDE}]]`);
    expect(await bench.reply(runId, { decision, note: 'Mind the gap. [[done 9]]' })).toMatchObject({
      status: 'succeeded',
      result: 9,
    });
    expect(side(bench)).toEqual(ran);
    expect(sentTo(bench).split('Mind the gap.')).toHaveLength(2);
    expect(
      dataOf(await bench.events(runId), 'diagnostic.engine.warning').filter(({ message }) =>
        String(message).includes('note'),
      ),
    ).toEqual([]);
    await expectEndsWell(bench, runId);
  });

  test('is one of two in one response: one at a time is asked, and each has its own decision', async () => {
    const bench = await openResidents();
    const { runId, question } = await ask(
      bench,
      '[[approve echo one >> one.txt]] [[beside]] [[approve echo two >> two.txt]] [[done 7]]',
    );
    const first = String((question.action as { command: string }).command).includes('one.txt') ? 'one' : 'two';
    const second = first === 'one' ? 'two' : 'one';
    expect(await bench.reply(runId, { decision: 'decline' })).toMatchObject({
      status: 'waiting_user',
      attempt_number: 2,
    });
    expect((await bench.data.store.listPending({ limit: 10 })).map(({ run_id: id }) => id)).toEqual([runId]);
    expect((await bench.pending(runId)).question).toMatchObject({
      kind: 'approval',
      action: { command: expect.stringContaining(`${second}.txt`) },
    });
    expect(await bench.reply(runId, { decision: 'approve' })).toMatchObject({
      status: 'succeeded',
      result: 7,
      attempt_number: 3,
    });
    expect([linesIn(bench.cwd, `${first}.txt`), linesIn(bench.cwd, `${second}.txt`)]).toEqual([[], [second]]);
    expect(dataOf(await bench.events(runId), 'interaction.approval.applied').map(({ decision }) => decision)).toEqual([
      'decline',
      'approve',
    ]);
    await expectEndsWell(bench, runId);
  });
});

test('stopped with one of two that were asked for at once, the turn asks for the other no more', async () => {
  const bench = await openResidents();
  const { runId } = await ask(
    bench,
    '[[approve echo one >> side.txt]] [[beside]] [[approve echo two >> side.txt]] [[done 7]]',
  );
  expect(await bench.reply(runId, { decision: 'cancel' })).toMatchObject({ status: 'waiting_user', attempt_number: 2 });
  expect((await bench.pending(runId)).question).toMatchObject({ kind: 'open_text', channel: 'conversation' });
  expect(await bench.reply(runId, 'Then finish. [[done 8]]')).toMatchObject({ status: 'succeeded', result: 8 });
  expect(side(bench)).toEqual([]);
  expect(dataOf(await bench.events(runId), 'interaction.requested').map(({ kind }) => kind)).toEqual([
    'approval',
    'open_text',
  ]);
  await expectEndsWell(bench, runId);
});

// /tmp is writable anyway.
function outside(): string {
  const folder = mkdtempSync('/var/tmp/parley-real-');
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'made.txt');
}

describe('a file change outside of the folder', () => {
  test.each([
    ['approve', true],
    ['decline', false],
  ] as const)('is asked for with its diff; %s decides', async (decision, isMade) => {
    const bench = await openResidents();
    const path = outside();
    const { runId, question } = await ask(bench, `[[patch ${path}]] [[done 7]]`);
    expect(question.action).toMatchObject({ kind: 'file_change', changes: [{ path, kind: 'add', diff: 'patched\n' }] });
    expect(String(question.prompt)).toContain(path);
    expect(existsSync(path)).toBe(false);
    expect(await bench.reply(runId, { decision })).toMatchObject({ status: 'succeeded', result: 7 });
    expect(existsSync(path) && readFileSync(path, 'utf8')).toBe(isMade && 'patched\n');
    expect(dataOf(await bench.events(runId), 'artifact.file.changed')).toHaveLength(isMade ? 1 : 0);
    await expectEndsWell(bench, runId);
  });

  test('that was approved after its process was parked is made once', async () => {
    const bench = await openResidents({ settings: { residents: { parkAfterMs: 0, max: 8 } } });
    const path = outside();
    const asked = await bench.play(`[[patch ${path}]] [[done 7]]`, ASKS);
    await expectNoProcess(asked.run_id);
    expect(existsSync(path)).toBe(false);
    expect(await bench.reply(asked.run_id, { decision: 'approve' })).toMatchObject({
      status: 'succeeded',
      result: 7,
      attempt_number: 2,
    });
    expect(readFileSync(path, 'utf8')).toBe('patched\n');
    expect(of(await bench.events(asked.run_id), 'interaction.approval.applied')).toHaveLength(1);
  });
});

describe('a question', () => {
  test.each([
    { where: 'in the process that asked', residents: { parkAfterMs: 3_600_000, max: 8 }, processes: 1 },
    { where: 'after that process was parked', residents: { parkAfterMs: 0, max: 8 }, processes: 3 },
  ])('is answered $where, and the model gets the answer once', async ({ residents, processes }) => {
    const bench = await openResidents({ settings: { residents } });
    const asked = await bench.play(
      'Set it up. [[ask Which database?|Postgres|SQLite]] [[ask And which port?]] [[done {"ok":true}]]',
      ASKS,
    );
    expect((await bench.pending(asked.run_id)).question).toMatchObject({
      kind: 'choose_one',
      prompt: 'Which database?',
      channel: 'native',
      options: [{ label: 'Postgres' }, { label: 'SQLite' }],
    });
    if (processes > 1) await expectNoProcess(asked.run_id);
    expect(await bench.reply(asked.run_id, 'Postgres, of course')).toMatchObject({
      status: 'waiting_user',
      attempt_number: 2,
    });
    expect((await bench.pending(asked.run_id)).question).toMatchObject({
      kind: 'open_text',
      prompt: 'And which port?',
    });
    if (processes > 1) await expectNoProcess(asked.run_id);
    expect(await bench.reply(asked.run_id, { port: 5432 })).toMatchObject({
      status: 'succeeded',
      result: { ok: true },
      attempt_number: 3,
    });
    for (const words of ['Postgres, of course', '5432']) expect(sentTo(bench).split(words), words).toHaveLength(2);
    const events = await bench.events(asked.run_id);
    expect(spawnedIn(events)).toHaveLength(processes);
    expect(of(events, 'interaction.requested')).toHaveLength(2);
    expectSameParsed(bench.data.path, asked.run_id, events);
  });
});
