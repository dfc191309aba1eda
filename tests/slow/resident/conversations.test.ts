// A conversation with a resident engine: one process for its turns while it is kept, another one after it was parked;
// every byte of its log belongs to one turn, and gives the same events when it is read again.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { createTurnParser, findEngine } from '../../../src/engines/registry.js';
import { newMemory } from '../../../src/engines/turn-parser.js';
import type { Json, JsonObject } from '../../../src/kernel/json.js';
import type { RaspEvent } from '../../../src/rasp/event.js';
import type { RunRecord } from '../../../src/store/store.js';
import { processesOf } from '../../support/orchestrated.js';
import { dataOf, ENGINE, gone, type ResidentBench, withBench } from '../../support/resident-bench.js';

const PARKED = { settings: { residents: { parkAfterMs: 0, max: 8 } } };
// The input of the server, line by line.
function requestsIn(bench: ResidentBench, { run_id: runId }: RunRecord): JsonObject[] {
  return readFileSync(join(bench.data.path, 'runs', runId, 'agents/main/runtime/requests.jsonl'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as JsonObject);
}

// The responses to its own requests.
const answersIn = (bench: ResidentBench, run: RunRecord): unknown[] =>
  requestsIn(bench, run)
    .filter(({ method }) => method === undefined)
    .map(({ result }) => result);

const cut = (path: string, { from = 0, bytes }: { from?: number; bytes: number }): Buffer =>
  readFileSync(path).subarray(from, from + bytes);

// The current output of its parser, turn by turn, for the stored data of the run.
async function expectReadAgain(bench: ResidentBench, run: RunRecord): Promise<void> {
  const stored = await bench.events(run);
  const engine = findEngine(ENGINE);
  const logs = {
    stdout: join(bench.data.path, 'runs', run.run_id, 'agents/main/runtime/events.jsonl'),
    stderr: join(bench.data.path, 'runs', run.run_id, 'agents/main/runtime/stderr.log'),
  };
  const memory = newMemory();
  const again: unknown[] = [];
  for (const { event, data, attempt_number: attempt } of stored) {
    if (event.type !== 'lifecycle.turn.ended' && event.type !== 'lifecycle.process.ended') continue;
    const { stdout, stderr } = data['streams'] as Record<'stdout' | 'stderr', { from?: number; bytes: number }>;
    const version = stored.find(
      (other) => other.event.type === 'lifecycle.turn.started' && other.attempt_number === attempt,
    )?.data['engine_version'] as string | undefined;
    const parser = createTurnParser(engine, version, {
      at: { stdout: stdout.from ?? 0, stderr: stderr.from ?? 0 },
      memory,
    });
    const drafts = [
      ...parser.push('stdout', cut(logs.stdout, stdout)),
      ...parser.push('stderr', cut(logs.stderr, stderr)),
      ...parser.finish(),
    ];
    again.push(
      ...drafts.map(({ type, data, range }) => ({
        type,
        data: JSON.parse(JSON.stringify(data)) as Json,
        range: range && { attempt, ...range },
      })),
    );
  }
  const before = stored.filter(({ source }) => source.parser === 'codex_app_server');
  expect(before.length).toBeGreaterThan(5);
  expect(again).toEqual(
    before.map(({ event, data, raw_ref: ref }: RaspEvent) => ({
      type: event.type,
      data,
      range: ref && { attempt: ref.attempt_number, stream: ref.stream, from: ref.byte_from, to: ref.byte_to },
    })),
  );
}

test('one process runs the turns of a conversation, with deltas, tools and files as events', async () =>
  withBench(async (bench) => {
    const first = await bench.play('[[reason I think.]] [[say One two three.]] [[run echo made > made.txt]]');
    expect(first.status).toBe('waiting_user');
    const second = await bench.reply(first, 'More. [[say Second.]]');
    expect(second).toMatchObject({ status: 'waiting_user', attempt_number: 2 });
    const last = await bench.reply(first, 'And last. [[done {"n":3}]]');
    expect(last).toMatchObject({ status: 'succeeded', result: { n: 3 } });
    expect(await bench.pids(first)).toHaveLength(1);
    const events = await bench.events(first);
    expect(
      dataOf(events, 'agent.message.delta')
        .map(({ text }) => text)
        .join(''),
    ).toContain('One two three.');
    expect(dataOf(events, 'tool.call.completed')).toMatchObject([{ name: 'shell', status: 'completed', exit_code: 0 }]);
    expect([...new Set(events.map(({ event }) => event.category))]).toEqual(
      expect.arrayContaining(['lifecycle', 'agent', 'tool', 'interaction']),
    );
    expect(dataOf(events, 'lifecycle.session.bound').map((data) => data['session_id'])).toEqual(
      Array.from({ length: 3 }, () => events.find(({ correlation }) => correlation.session_id)?.correlation.session_id),
    );
    await expectReadAgain(bench, last);
  }));

test('a process that is not kept is replaced by one that continues the session', async () =>
  withBench(async (bench) => {
    const first = await bench.play('[[say One.]]');
    await gone(first.run_id);
    const second = await bench.reply(first, 'More. [[approve true]] [[say Two.]]');
    expect((await bench.pending(second)).question['kind']).toBe('approval');
    await gone(first.run_id);
    const third = await bench.reply(first, { decision: 'approve' });
    expect(third.status).toBe('waiting_user');
    await gone(first.run_id);
    const last = await bench.reply(first, '[[done 3]]');
    expect(last).toMatchObject({ status: 'succeeded', result: 3, attempt_number: 4 });
    expect(await bench.pids(first)).toHaveLength(4);
    await expectReadAgain(bench, last);
  }, PARKED));

test('finish ends a conversation, and the process that was kept for it', async () =>
  withBench(async (bench) => {
    const run = await bench.play('[[say One.]]');
    expect(processesOf(run.run_id)).not.toEqual([]);
    const { interaction_id: id } = await bench.pending(run);
    await bench.orchestrator.reply(run.run_id, { interaction_id: id, finish: true });
    expect((await bench.waitUntilIdle(run)).status).toBe('succeeded');
  }));

test('only the latest waiting processes up to the limit are kept; the other runs can still be answered', async () =>
  withBench(
    async (bench) => {
      const runs: RunRecord[] = [];
      for (let index = 0; index < 4; index += 1)
        runs.push(await bench.play(`[[say ${index}]] [[approve echo ${index}]] [[done ${index}]]`));
      await vi.waitFor(
        () => expect(runs.map(({ run_id: id }) => processesOf(id).length > 0)).toEqual([false, false, true, true]),
        { timeout: 20_000 },
      );
      expect(bench.orchestrator.residents).toBe(2);
      for (const [index, run] of runs.entries())
        expect(await bench.reply(run, { decision: 'approve' })).toMatchObject({ status: 'succeeded', result: index });
      expect(bench.commands()).toHaveLength(4);
    },
    { settings: { residents: { parkAfterMs: 1_000_000, max: 2 } } },
  ));

test('an auto run ends with its turn, and no process stays; one that asks for permission fails', async () =>
  withBench(async (bench) => {
    expect(await bench.play('[[say Done it.]]', { execution_mode: 'auto' })).toMatchObject({
      status: 'succeeded',
      result: 'Done it.',
    });
    expect(await bench.play('[[approve true]]', { execution_mode: 'auto' })).toMatchObject({
      status: 'failed',
      error: { code: 'AUTO_MODE_CANNOT_ASK' },
    });
    expect(bench.commands()).toEqual([]);
  }));

describe.each([
  { kept: 'the process that asked', changes: {} },
  { kept: 'another process', changes: PARKED },
])('answered to $kept', ({ changes }) => {
  const parks = 'settings' in changes;

  test('a question of the tool is answered once', async () =>
    withBench(async (bench) => {
      const run = await bench.play('[[ask Which one? | red | blue]] [[done 1]]');
      expect((await bench.pending(run)).question).toMatchObject({
        kind: 'choose_one',
        prompt: 'Which one?',
        channel: 'native',
        options: [{ label: 'red' }, { label: 'blue' }],
      });
      if (parks) await gone(run.run_id);
      expect((await bench.reply(run, 'indigo')).status).toBe('succeeded');
      expect(await bench.pids(run)).toHaveLength(parks ? 2 : 1);
      const requests = readFileSync(
        join(bench.data.path, 'runs', run.run_id, 'agents/main/runtime/requests.jsonl'),
        'utf8',
      );
      expect(requests.match(/indigo/g)).toHaveLength(1);
    }, changes));

  test('a form takes only what fits it', async () =>
    withBench(async (bench) => {
      const run = await bench.play('[[form Who are you?]] [[done 1]]');
      const { question, interaction_id: id } = await bench.pending(run);
      expect(question).toMatchObject({
        kind: 'fill_fields',
        fields: [{ id: 'name' }, { id: 'sure' }],
        response_schema: {},
      });
      expect(dataOf(await bench.events(run), 'interaction.requested')).toMatchObject([
        { response_schema: question['response_schema'] },
      ]);
      if (parks) await gone(run.run_id);
      for (const bogus of ['ada', { name: 7 }, { sure: true }, { decision: 'approve' }] as Json[])
        await expect(
          bench.orchestrator.reply(run.run_id, { interaction_id: id, response: bogus }),
        ).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      expect((await bench.reply(run, { name: 'ada', sure: true })).status).toBe('succeeded');
    }, changes));

  test("the agent's own question tool", async () =>
    withBench(async (bench) => {
      const run = await bench.play('[[input Which colour? | red | blue]] [[done 1]]');
      expect((await bench.pending(run)).question).toMatchObject({
        kind: 'choose_one',
        options: [{ label: 'red' }, { label: 'blue' }],
      });
      if (parks) await gone(run.run_id);
      expect((await bench.reply(run, 'red')).status).toBe('succeeded');
    }, changes));
});

// A form whose only field a bare answer might have filled.
test('silence declines a form', async () =>
  withBench(async (bench) => {
    const run = await bench.play('[[form1 Delete everything?]] [[done 1]]', {
      runtime_options: { interactive_require_user_reply: false, session_timeout_sec: 0.2 },
    });
    await vi.waitFor(async () => expect((await bench.data.store.loadRun(run.run_id))?.status).toBe('succeeded'), {
      timeout: 20_000,
    });
    await bench.waitUntilIdle(run);
    expect(answersIn(bench, run)).toEqual([{ action: 'decline', content: null, _meta: null }]);
    expect(dataOf(await bench.events(run), 'interaction.auto_decide.timeout')).toMatchObject([{ policy: 'decline' }]);
  }));

test.each<{ response: Json; answer: JsonObject }>([
  { response: { confirm: false }, answer: { action: 'accept', content: { confirm: false }, _meta: null } },
  { response: { decision: 'decline' }, answer: { action: 'decline', content: null, _meta: null } },
  { response: { decision: 'cancel' }, answer: { action: 'cancel', content: null, _meta: null } },
])('a form that is answered with $response', async ({ response, answer }) =>
  withBench(async (bench) => {
    const run = await bench.play('[[form1 Delete everything?]] [[done 1]]');
    expect((await bench.pending(run)).question['prompt']).toBe(
      'The MCP server stand-in wants to know something from you.\nIt says:\n  | Delete everything?',
    );
    const { interaction_id: id } = await bench.pending(run);
    for (const bogus of [true, false, 'yes', { confirm: 'yes' }, {}] as Json[])
      await expect(bench.orchestrator.reply(run.run_id, { interaction_id: id, response: bogus })).rejects.toMatchObject(
        { code: 'INVALID_ARGUMENT' },
      );
    await bench.reply(run, response);
    expect(answersIn(bench, run)).toEqual([answer]);
  }),
);

test('a note that comes with a decision reaches the agent in its turn', async () =>
  withBench(async (bench) => {
    const run = await bench.play('[[approve true]] [[work 300]] [[done 1]]');
    expect((await bench.reply(run, { decision: 'decline', note: 'Use the other folder.' })).status).toBe('succeeded');
    expect(requestsIn(bench, run).filter(({ method }) => method === 'turn/steer')).toMatchObject([
      { params: { input: [{ text: 'Use the other folder.' }] } },
    ]);
  }));
