// The whole promise on the real CLIs: ask, park without a process, kill the orchestrator with SIGKILL, answer, continue
// the conversation in new processes. Twice in one run.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { RunRecord } from '../../src/store/store.js';
import { openRealBench, REAL_ENGINES } from './real-bench.js';
import type { Person } from './real-person.js';
import {
  createJob,
  eventsOf,
  look,
  openSite,
  processesOf,
  replyJob,
  settledRun,
  startWorker,
  until,
} from './real-worker.js';

const questionOf = async (person: Person, { run_id: id }: RunRecord) =>
  (await look(person, ({ store }) => store.loadPendingInteraction(id)))?.question;
const sessionOf = async (person: Person, { request_id: id }: RunRecord) =>
  (await look(person, ({ store }) => store.loadHandle(id)))?.handle_value;
const boundIn = async (person: Person, id: string) =>
  (await eventsOf(person, id))
    .filter(({ event }) => event.type === 'lifecycle.session.bound')
    .map(({ data }) => data['session_id']);
// The last request to the service.
const lastSent = ({ model }: Person) => JSON.stringify(model.requests.at(-1)?.body);

async function expectWaits(person: Person, runId: string, attempt: number, question: object): Promise<RunRecord> {
  const run = await settledRun(person, runId);
  expect(run).toMatchObject({ status: 'waiting_user', attempt_number: attempt });
  expect(await questionOf(person, run)).toMatchObject(question);
  expect(processesOf(person, runId)).toEqual([]);
  return run;
}

describe.each(REAL_ENGINES)('%s', (engine) => {
  test('asks, waits without a process, survives a kill of Parley, and continues the conversation, twice', async () => {
    const person = await openSite(engine);
    let worker = await startWorker(
      person,
      createJob(
        person,
        'Set it up. [[tool echo first]][[ask Which database?|Postgres|SQLite]][[tool echo second]][[ask And which ' +
          'port?]][[done {"ok":true}]]',
      ),
    );
    const { runId } = worker;
    const waiting = await expectWaits(person, runId, 1, {
      kind: 'choose_one',
      prompt: 'Which database?',
      channel: 'tool',
      options: [{ label: 'Postgres' }, { label: 'SQLite' }],
    });
    const session = await sessionOf(person, waiting);
    await worker.kill();

    worker = await startWorker(person, await replyJob(person, runId, 'Postgres, please'));
    await expectWaits(person, runId, 2, { kind: 'open_text', prompt: 'And which port?' });
    // The service received everything again: the request, the question, the answer.
    for (const words of ['Set it up.', 'Which database?', 'Postgres, please'])
      expect(lastSent(person)).toContain(words);
    await worker.kill();

    await startWorker(person, await replyJob(person, runId, '5432'));
    expect(await settledRun(person, runId)).toMatchObject({
      status: 'succeeded',
      attempt_number: 3,
      result: { ok: true },
    });
    for (const words of ['Set it up.', 'Which database?', 'Postgres, please', 'And which port?', '5432'])
      expect(lastSent(person)).toContain(words);
    expect(await boundIn(person, runId)).toEqual([session, session, session]);
    const warnings = (await eventsOf(person, runId)).filter(({ data }) =>
      ['ASK_TOOL_NOT_LISTED', 'ASK_WITNESS_MISSING', 'SESSION_ID_CHANGED'].includes(String(data['code'])),
    );
    expect(warnings).toEqual([]);
    expect(processesOf(person, runId)).toEqual([]);
  });

  test('killed with Parley during an answered turn, it is ended by the next start; a retry continues it', async () => {
    const person = await openSite(engine);
    const startMark = join(person.cwd, 'begun');
    // Only the first time it works forever.
    const command = `test -e begun || { touch begun; sleep 3000; }`;
    let worker = await startWorker(
      person,
      createJob(
        person,
        `Set it up. [[ask Which database?]][[tool ${command}]][[ask And which port?]][[done {"ok":true}]]`,
      ),
    );
    const { runId } = worker;
    const waiting = await expectWaits(person, runId, 1, { prompt: 'Which database?' });
    const session = await sessionOf(person, waiting);
    await worker.kill();

    worker = await startWorker(person, await replyJob(person, runId, 'Postgres, please'));
    await until(() => (existsSync(startMark) ? true : undefined), 'the command of the agent');
    await worker.kill();
    // Leaves out the engine and its command. Does not detect a process that becomes another program at this time.
    await expect.poll(() => processesOf(person, runId).length).toBeGreaterThan(1);

    worker = await startWorker(person, { type: 'retry', run_id: runId });
    expect(await settledRun(person, runId)).toMatchObject({
      status: 'failed',
      attempt_number: 2,
      error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' },
    });
    const { runId: retried } = worker;
    await expectWaits(person, retried, 1, { prompt: 'And which port?' });
    expect(processesOf(person, runId)).toEqual([]);
    await worker.kill();

    await startWorker(person, await replyJob(person, retried, '5432'));
    expect(await settledRun(person, retried)).toMatchObject({
      status: 'succeeded',
      attempt_number: 2,
      result: { ok: true },
    });
    for (const words of ['Set it up.', 'Which database?', 'Postgres, please', 'And which port?', '5432'])
      expect(lastSent(person)).toContain(words);
    expect(await boundIn(person, retried)).toEqual([session, session]);
  });

  test('a question in the last message is asked when the tool is not used', async () => {
    const bench = await openRealBench(engine);
    const run = await bench.play(
      '[[answer I need to know. {"ask_user":{"prompt":"Which one?","options":["x","y"]}}]]',
      { execution_mode: 'interactive' },
    );
    expect(run.status).toBe('waiting_user');
    expect((await bench.data.store.loadPendingInteraction(run.run_id))?.question).toMatchObject({
      kind: 'choose_one',
      prompt: 'Which one?',
      channel: 'envelope',
    });
  });

  test('an auto run is given no question tool', async () => {
    const bench = await openRealBench(engine);
    await bench.play('[[ask Which?]][[done 1]]');
    expect(JSON.stringify(bench.model.requests)).not.toContain('ask_human');
  });
});
