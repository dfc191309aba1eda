// An approval survives the exit of the asking process and of Parley. A later decision is applied once, to the same
// action only.
import { describe, expect, test } from 'vitest';
import type { Json } from '../../src/kernel/json.js';
import type { RunRecord } from '../../src/store/store.js';
import { processesOf } from '../support/orchestrated.js';
import type { Person } from './real-person.js';
import {
  ASKS,
  dataOf,
  ENGINE,
  expectNoProcess,
  expectSameParsed,
  linesIn,
  memoryOf,
  of,
  openResidents,
  spawnedIn,
} from './real-resident.js';
import {
  createJob,
  eventsOf,
  look,
  openSite,
  replyJob,
  settledRun,
  startWorker,
  until,
  type Worker,
} from './real-worker.js';

const COMMAND = 'echo done >> side.txt';
const side = ({ cwd }: { readonly cwd: string }) => linesIn(cwd, 'side.txt');
const asks = (name: string) => `[[approve echo ${name} >> ${name}.txt]]`;
const inbox = (person: Person) => look(person, ({ store }) => store.listPending({ limit: 10 }));

// Kills both with SIGKILL, so that neither has time to notice that the other has exited.
async function killAll(worker: Worker): Promise<void> {
  process.kill(worker.pid, 'SIGSTOP');
  const pids = processesOf(worker.runId);
  expect(pids).not.toEqual([]);
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  await worker.kill();
  await until(() => (processesOf(worker.runId).length === 0 ? true : undefined), 'the end of the processes');
}

// A run that waits for permission after every process that could know of it was killed.
async function askAndDie(person: Person, prompt: string): Promise<RunRecord> {
  const worker = await startWorker(person, createJob(person, prompt, { ...ASKS, engine: ENGINE }));
  const asked = await settledRun(person, worker.runId);
  expect(asked).toMatchObject({ status: 'waiting_user', attempt_number: 1 });
  const before = await inbox(person);
  await killAll(worker);
  expect(side(person)).toEqual([]);
  expect(await inbox(person)).toEqual(before);
  expect(before).toMatchObject([
    {
      run_id: worker.runId,
      state: 'pending',
      question: { kind: 'approval', action: { command: `/bin/bash -lc '${COMMAND}'` } },
    },
  ]);
  return asked;
}

async function answer(
  person: Person,
  { run_id: runId }: RunRecord,
  response: Json,
): Promise<{ readonly run: RunRecord; readonly worker: Worker }> {
  const worker = await startWorker(person, await replyJob(person, runId, response));
  return { run: await settledRun(person, runId), worker };
}

async function expectEndsWell(person: Person, { run_id: runId }: RunRecord, processes: number): Promise<void> {
  const events = await eventsOf(person, runId);
  expect(processesOf(runId)).toEqual([]);
  expect(new Set(spawnedIn(events)).size).toBe(processes);
  expect(new Set(dataOf(events, 'lifecycle.session.bound').map(({ session_id: id }) => id)).size).toBe(1);
  expectSameParsed(person.data, runId, events);
}

describe('killed with Parley while it waits for approval, a run is still in the inbox after a start', () => {
  test('and approved, its command runs once, after that was stored', async () => {
    const person = await openSite('codex');
    const asked = await askAndDie(person, `[[answer First.]] [[approve ${COMMAND}]] [[done 7]]`);
    const worker = await startWorker(person, { type: 'run_due', run_id: asked.run_id });
    expect(await settledRun(person, asked.run_id)).toMatchObject({ status: 'waiting_user' });
    expect(processesOf(asked.run_id)).toEqual([]);
    expect(await inbox(person)).toMatchObject([{ run_id: asked.run_id, state: 'pending' }]);
    await worker.kill();
    const { run } = await answer(person, asked, { decision: 'approve' });
    expect(run).toMatchObject({ status: 'succeeded', attempt_number: 2, result: 7 });
    expect(side(person)).toEqual(['done']);
    const events = await eventsOf(person, run.run_id);
    const applied = of(events, 'interaction.approval.applied');
    expect(applied).toMatchObject([{ data: { decision: 'approve' } }]);
    const [ran, ...others] = of(events, 'tool.call.completed');
    expect(others).toEqual([]);
    expect(ran?.data).toMatchObject({ status: 'completed', exit_code: 0 });
    expect(applied[0]?.seq).toBeLessThan(ran?.seq ?? 0);
    expect(of(events, 'interaction.requested')).toHaveLength(1);
    await expectEndsWell(person, run, 2);
  });

  test('and declined, its command never runs', async () => {
    const person = await openSite('codex');
    const asked = await askAndDie(person, `[[approve ${COMMAND}]] [[done 7]]`);
    // Even if the agent asks once more.
    const { run } = await answer(person, asked, { decision: 'decline', note: `[[approve ${COMMAND}]]` });
    expect(run).toMatchObject({ status: 'succeeded', attempt_number: 2, result: 7 });
    expect(side(person)).toEqual([]);
    const events = await eventsOf(person, run.run_id);
    expect(dataOf(events, 'interaction.approval.applied')).toMatchObject([{ decision: 'decline' }]);
    expect(dataOf(events, 'tool.call.completed').map(({ status }) => status)).toEqual(['declined']);
    await expectEndsWell(person, run, 2);
  });

  test('and declined, the agent continues without it and asks nothing', async () => {
    const person = await openSite('codex');
    const asked = await askAndDie(person, `[[approve ${COMMAND}]] [[done 7]]`);
    const { run } = await answer(person, asked, { decision: 'decline', note: 'Never, please.' });
    expect(run).toMatchObject({ status: 'succeeded', attempt_number: 2, result: 7 });
    expect(side(person)).toEqual([]);
    expect(JSON.stringify(person.model.requests.at(-1)?.body)).toContain('Never, please.');
    await expectEndsWell(person, run, 2);
  });

  test('and approved, another command than that is asked for again, and nothing has run before', async () => {
    const person = await openSite('codex');
    const asked = await askAndDie(person, `[[approve ${COMMAND}]] [[done 7]]`);
    const { run: again, worker } = await answer(person, asked, {
      decision: 'approve',
      note: '[[approve echo  done >> side.txt]]',
    });
    expect(again).toMatchObject({ status: 'waiting_user', attempt_number: 2 });
    expect(side(person)).toEqual([]);
    expect(of(await eventsOf(person, asked.run_id), 'interaction.approval.applied')).toEqual([]);
    expect(await inbox(person)).toMatchObject([
      { question: { kind: 'approval', action: { command: "/bin/bash -lc 'echo  done >> side.txt'" } } },
    ]);
    await worker.kill();
    const { run } = await answer(person, again, { decision: 'approve' });
    expect(run).toMatchObject({ status: 'succeeded', attempt_number: 3, result: 7 });
    expect(side(person)).toEqual(['done']);
    expect(of(await eventsOf(person, run.run_id), 'interaction.approval.applied')).toHaveLength(1);
    await expectEndsWell(person, run, 3);
  });

  test('and approved for the session, the new process asks again only for a different command', async () => {
    const person = await openSite('codex');
    const asked = await askAndDie(person, `[[approve ${COMMAND}]] [[done 7]]`);
    const { run: again } = await answer(person, asked, {
      decision: 'approve_for_session',
      note: `[[approve ${COMMAND}]] [[approve ${COMMAND}]] [[approve ${COMMAND} && echo more]]`,
    });
    expect(again).toMatchObject({ status: 'waiting_user', attempt_number: 2 });
    expect(await inbox(person)).toMatchObject([
      { question: { action: { command: expect.stringContaining('echo more') } } },
    ]);
    expect(side(person)).toEqual(['done', 'done']);
  });

  test('and stopped, nothing is started until there is another word', async () => {
    const person = await openSite('codex');
    const asked = await askAndDie(person, `[[approve ${COMMAND}]] [[done 7]]`);
    const requests = person.model.requests.length;
    const { run: stopped, worker } = await answer(person, asked, { decision: 'cancel' });
    expect(stopped).toMatchObject({ status: 'waiting_user', attempt_number: 2 });
    expect(person.model.requests.length).toBe(requests);
    expect(processesOf(asked.run_id)).toEqual([]);
    await worker.kill();
    const { run } = await answer(person, stopped, 'Then finish. [[done 8]]');
    expect(run).toMatchObject({ status: 'succeeded', attempt_number: 3, result: 8 });
    expect(side(person)).toEqual([]);
    await expectEndsWell(person, run, 2);
  });
});

test('killed with Parley after an approved command has run, it does not run again', async () => {
  const person = await openSite('codex');
  const asked = await askAndDie(person, `[[approve ${COMMAND}]] [[done 7]]`);
  const worker = await startWorker(
    person,
    await replyJob(person, asked.run_id, { decision: 'approve', note: `[[approve ${COMMAND}]] [[tool sleep 600]]` }),
  );
  await until(() => (side(person).length > 0 ? true : undefined), 'the command');
  await killAll(worker);
  const after = await startWorker(person, { type: 'retry', run_id: asked.run_id });
  expect(await settledRun(person, asked.run_id)).toMatchObject({
    status: 'failed',
    error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' },
  });
  await settledRun(person, after.runId);
  expect(side(person)).toEqual(['done']);
  expect(of(await eventsOf(person, asked.run_id), 'interaction.approval.applied')).toHaveLength(1);
});

test('parked, a run that waits for approval has no process; approved, its command runs once', async () => {
  const bench = await openResidents({ settings: { residents: { parkAfterMs: 0, max: 8 } } });
  const asked = await bench.play(`[[approve ${COMMAND}]] [[done 7]]`, ASKS);
  await expectNoProcess(asked.run_id);
  await expect.poll(() => bench.orchestrator.residents, { timeout: 10_000 }).toBe(0);
  expect(await bench.data.store.listPending({ limit: 10 })).toHaveLength(1);
  expect(side(bench)).toEqual([]);
  expect(await bench.reply(asked.run_id, { decision: 'approve' })).toMatchObject({
    status: 'succeeded',
    attempt_number: 2,
    result: 7,
  });
  expect(side(bench)).toEqual(['done']);
  const events = await bench.events(asked.run_id);
  expect(spawnedIn(events)).toHaveLength(2);
  expect(of(events, 'interaction.approval.applied')).toHaveLength(1);
  expectSameParsed(bench.data.path, asked.run_id, events);
});

test('killed while Parley lives, the process of a run that waits for approval is replaced by the answer', async () => {
  const bench = await openResidents();
  const asked = await bench.play(`[[approve ${COMMAND}]] [[done 7]]`, ASKS);
  for (const pid of processesOf(asked.run_id)) process.kill(pid, 'SIGKILL');
  // A decision that is sent before that is known is lost with the process.
  await expect.poll(() => bench.orchestrator.residents, { timeout: 10_000 }).toBe(0);
  expect(await bench.reply(asked.run_id, { decision: 'approve' })).toMatchObject({
    status: 'succeeded',
    attempt_number: 2,
    result: 7,
  });
  expect(side(bench)).toEqual(['done']);
  const events = await bench.events(asked.run_id);
  expect(spawnedIn(events)).toHaveLength(2);
  expect(of(events, 'interaction.approval.applied')).toHaveLength(1);
  expectSameParsed(bench.data.path, asked.run_id, events);
});

test('killed after a decision is sent and before it is read, the run fails and never reuses it', async () => {
  const bench = await openResidents();
  const asked = await bench.play(`[[approve ${COMMAND}]] [[done 7]]`, ASKS);
  const pids = processesOf(asked.run_id);
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  const { interaction_id: id } = await bench.pending(asked.run_id);
  await bench.orchestrator.reply(asked.run_id, { interaction_id: id, response: { decision: 'approve' } });
  await expect
    .poll(async () => of(await bench.events(asked.run_id), 'interaction.approval.applied').length, { timeout: 20_000 })
    .toBe(1);
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  expect(await bench.waitUntilIdle(asked.run_id)).toMatchObject({ status: 'failed', error: { code: 'ENGINE_EXITED' } });
  expect(side(bench)).toEqual([]);
  expectSameParsed(bench.data.path, asked.run_id, await bench.events(asked.run_id));
  // The process that continues it asks again.
  const { run_id: runId } = await bench.orchestrator.continueFrom(asked.run_id, {
    prompt: `Go on. [[approve ${COMMAND}]] [[done 8]]`,
  });
  expect(await bench.waitUntilIdle(runId)).toMatchObject({ status: 'waiting_user' });
  expect(side(bench)).toEqual([]);
  expect(await bench.reply(runId, { decision: 'approve' })).toMatchObject({ status: 'succeeded', result: 8 });
  expect(side(bench)).toEqual(['done']);
});

test('of two requests at once one is approved, its process parked: nothing runs twice, the other is open', async () => {
  const bench = await openResidents({ settings: { residents: { parkAfterMs: 0, max: 8 } } });
  const asked = await bench.play(
    '[[approve echo one >> one.txt]] [[beside]] [[approve echo two >> two.txt]] [[done 7]]',
    ASKS,
  );
  await expectNoProcess(asked.run_id);
  const first = String((await bench.pending(asked.run_id)).question.prompt).includes('one.txt') ? 'one' : 'two';
  const second = first === 'one' ? 'two' : 'one';
  // The new process receives only the one decision; the agent asks for both once more.
  expect(
    await bench.reply(asked.run_id, {
      decision: 'approve',
      note: `${asks(second)} [[beside]] ${asks(first)} [[done 7]]`,
    }),
  ).toMatchObject({ status: 'waiting_user', attempt_number: 2 });
  expect((await bench.pending(asked.run_id)).question).toMatchObject({
    kind: 'approval',
    action: { command: expect.stringContaining(`${second}.txt`) },
  });
  await expectNoProcess(asked.run_id);
  expect(linesIn(bench.cwd, `${second}.txt`)).toEqual([]);
  expect(linesIn(bench.cwd, `${first}.txt`).length).toBeLessThanOrEqual(1);
  expect(await bench.reply(asked.run_id, { decision: 'approve', note: `${asks(second)} [[done 7]]` })).toMatchObject({
    status: 'succeeded',
    attempt_number: 3,
    result: 7,
  });
  expect(linesIn(bench.cwd, `${second}.txt`)).toEqual([second]);
  expect(linesIn(bench.cwd, `${first}.txt`).length).toBeLessThanOrEqual(1);
  const events = await bench.events(asked.run_id);
  expect(dataOf(events, 'interaction.approval.applied').length).toBeLessThanOrEqual(2);
  expectSameParsed(bench.data.path, asked.run_id, events);
});

test('runs that wait cost no more memory than the processes that may be kept', async () => {
  const bench = await openResidents({ settings: { slots: 1, residents: { parkAfterMs: 3_600_000, max: 1 } } });
  const measured: number[] = [];
  const runs: RunRecord[] = [];
  for (let count = 0; count < 3; count += 1) {
    const run = await bench.play(`[[approve ${COMMAND}]] [[done ${count}]]`, ASKS);
    runs.push(run);
    measured.push(memoryOf(run.run_id));
    for (const { run_id: parked } of runs.slice(0, -1)) {
      await expectNoProcess(parked);
      expect(memoryOf(parked)).toBe(0);
    }
  }
  expect(bench.orchestrator.residents).toBe(1);
  console.log(`memory of a run that waits for approval: ${measured.join(', ')} MB with its process, 0 MB when parked`);
  for (const megabytes of measured) expect(megabytes).toBeGreaterThan(10);
  const ended = await Promise.all(runs.map(({ run_id: runId }) => bench.reply(runId, { decision: 'approve' })));
  expect(ended.map(({ status, result }) => [status, result])).toEqual([
    ['succeeded', 0],
    ['succeeded', 1],
    ['succeeded', 2],
  ]);
  expect(side(bench)).toEqual(['done', 'done', 'done']);
});
