// Runs on the app-server of the real Codex: turns, conversations in one process and across several, limits, failing
// services.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseJson, type Json, type JsonObject } from '../../src/kernel/json.js';
import { processesOf } from '../support/orchestrated.js';
import { onlyLong, SimulatedTimers } from '../support/simulated-timers.js';
import {
  ASKS,
  dataOf,
  expectNoProcess,
  expectSameParsed,
  linesIn,
  of,
  openResidents,
  readLog,
  sentTo,
  spawnedIn,
} from './real-resident.js';

const HOUR_MS = 3_600_000;

// The part of a server's line that its event must contain.
const SAYS: Readonly<Record<string, (line: JsonObject, data: JsonObject) => boolean>> = {
  'agent.message.delta': ({ method, params }, { text }) =>
    method === 'item/agentMessage/delta' && (params as JsonObject).delta === text,
  'agent.message.final': ({ method, params }, { text }) => method === 'item/completed' && itemIn(params).text === text,
  'agent.usage': ({ method }) => method === 'thread/tokenUsage/updated',
  'tool.call.started': ({ method, params }, { kind }) =>
    method === 'item/started' && itemIn(params).type === (kind === 'command' ? 'commandExecution' : 'fileChange'),
  'tool.call.completed': ({ method, params }, { kind }) =>
    method === 'item/completed' && itemIn(params).type === (kind === 'command' ? 'commandExecution' : 'fileChange'),
  'artifact.file.changed': ({ params }, { path }) => JSON.stringify(itemIn(params).changes).includes(String(path)),
};

const itemIn = (params: Json | undefined): JsonObject => (params as JsonObject).item as JsonObject;

test('a plain turn: text, a command, a file and usage are events, and each names the bytes of its line', async () => {
  const bench = await openResidents();
  const run = await bench.play(
    '[[slow 1]] [[answer Some words, 漢字, that come in pieces.]] [[tool echo "the output"]] [[file made.txt]] ' +
      '[[done {"n":7}]]',
  );
  expect(run).toMatchObject({ status: 'succeeded', result: { n: 7 }, attempt_number: 1 });
  const events = await bench.events(run.run_id);
  const parsed = events.filter(({ raw_ref: ref }) => ref !== null);
  expect(new Set(parsed.map(({ source }) => source.parser))).toEqual(new Set(['codex_app_server']));
  const log = readLog(bench.data.path, run.run_id);
  const met = new Set<string>();
  for (const { event, data, raw_ref: ref } of parsed.filter((event) => event.raw_ref?.stream === 'stdout')) {
    const line = parseJson(log.subarray(ref?.byte_from, ref?.byte_to).toString('utf8')) as JsonObject | undefined;
    expect(line, JSON.stringify(ref)).toBeDefined();
    const says = SAYS[event.type];
    if (!line || !says) continue;
    met.add(event.type);
    expect([event.type, data, says(line, data)]).toEqual([event.type, data, true]);
  }
  expect([...met].toSorted()).toEqual(Object.keys(SAYS).toSorted());
  expect(
    dataOf(events, 'agent.message.delta')
      .map(({ text }) => text)
      .join(''),
  ).toContain('Some words, 漢字, that come in pieces.');
  expect(dataOf(events, 'agent.message.delta').length).toBeGreaterThan(3);
  expect(dataOf(events, 'tool.call.completed')).toMatchObject([
    { kind: 'command', status: 'completed', exit_code: 0, output: expect.stringContaining('the output') },
    { kind: 'file_change', status: 'completed' },
  ]);
  expect(dataOf(events, 'artifact.file.changed')).toMatchObject([{ path: join(bench.cwd, 'made.txt'), kind: 'add' }]);
  expect(existsSync(join(bench.cwd, 'made.txt'))).toBe(true);
  expect(dataOf(events, 'agent.usage').at(-1)).toMatchObject({ scope: 'thread', input_tokens: 300, output_tokens: 60 });
  expect(dataOf(events, 'lifecycle.turn.started')).toMatchObject([{ engine_version: '0.166.0' }]);
  expect(dataOf(events, 'diagnostic.parser.warning').filter(({ code }) => code !== 'STDERR_TEXT')).toEqual([]);
  expect(await bench.data.store.sumTurns(run.run_id)).toMatchObject([
    { engine: 'codex-app-server', hit_rate: 1, fallbacks: 0 },
  ]);
  expectSameParsed(bench.data.path, run.run_id, events);
});

describe.each([
  { where: 'in one process', residents: { parkAfterMs: HOUR_MS, max: 8 }, processes: 1 },
  { where: 'in a new process each, when the last one was parked', residents: { parkAfterMs: 0, max: 8 }, processes: 3 },
])('a conversation of three turns $where', ({ residents, processes }) => {
  test('has one session and one log that can be read again, and the model gets all of it', async () => {
    const bench = await openResidents({ settings: { residents } });
    const next = async (run: { readonly run_id: string }) => {
      if (processes > 1) await expectNoProcess(run.run_id);
      else expect(processesOf(run.run_id)).toContain(spawnedIn(await bench.events(run.run_id))[0]);
    };
    const first = await bench.play('One. [[tool echo 1]] [[answer First.]]', { execution_mode: 'interactive' });
    expect(first.status).toBe('waiting_user');
    await next(first);
    expect(await bench.reply(first.run_id, 'Two. [[tool echo 2]] [[answer Second.]]')).toMatchObject({
      status: 'waiting_user',
      attempt_number: 2,
    });
    await next(first);
    expect(await bench.reply(first.run_id, 'Three. [[done 3]]')).toMatchObject({
      status: 'succeeded',
      attempt_number: 3,
      result: 3,
    });
    for (const words of ['One.', 'First.', 'Two.', 'Second.', 'Three.']) expect(sentTo(bench)).toContain(words);
    const events = await bench.events(first.run_id);
    expect(new Set(spawnedIn(events)).size).toBe(processes);
    expect(spawnedIn(events)).toHaveLength(processes);
    expect(new Set(dataOf(events, 'lifecycle.session.bound').map(({ session_id: id }) => id)).size).toBe(1);
    expect(of(events, 'lifecycle.turn.ended')).toHaveLength(3);
    expectSameParsed(bench.data.path, first.run_id, events);
    expect(processesOf(first.run_id)).toEqual([]);
  });
});

test('a log with approvals, a process that was parked and one that was canceled can be read again', async () => {
  const bench = await openResidents({ settings: { residents: { parkAfterMs: 0, max: 8 } } });
  const asked = await bench.play('[[approve echo once >> side.txt]] [[ask Which?|a|b]] [[answer Well.]]', ASKS);
  await expectNoProcess(asked.run_id);
  await bench.reply(asked.run_id, { decision: 'approve' });
  await expectNoProcess(asked.run_id);
  expect(await bench.reply(asked.run_id, 'b')).toMatchObject({ status: 'waiting_user' });
  expect(linesIn(bench.cwd, 'side.txt')).toEqual(['once']);
  await bench.orchestrator.cancel(asked.run_id);
  await bench.waitUntilIdle(asked.run_id);
  expectSameParsed(bench.data.path, asked.run_id, await bench.events(asked.run_id));
});

describe('the limits of a turn', () => {
  test.each([
    { code: 'TURN_TIMEOUT', limits: { turn_timeout_sec: 3, idle_timeout_sec: 100 } },
    { code: 'ENGINE_IDLE_TIMEOUT', limits: { turn_timeout_sec: 100, idle_timeout_sec: 3 } },
  ])('end one that hangs with $code, and its process', async ({ code, limits }) => {
    const bench = await openResidents();
    const run = await bench.play('[[answer First some words.]] [[hang]]', { runtime_options: limits });
    expect(run).toMatchObject({ status: 'failed', error: { code } });
    expect(processesOf(run.run_id)).toEqual([]);
  });

  test('do not end a run that waits for a person, and apply again when it continues', async () => {
    const timers = new SimulatedTimers();
    const bench = await openResidents({
      timers: onlyLong(timers),
      settings: { residents: { parkAfterMs: 1000 * HOUR_MS, max: 8 } },
    });
    const asked = await bench.play('[[approve echo once >> side.txt]] [[hang]]', {
      ...ASKS,
      runtime_options: { turn_timeout_sec: 200, idle_timeout_sec: 1000 },
    });
    expect(asked.status).toBe('waiting_user');
    timers.advance(HOUR_MS);
    expect(await bench.waitUntilIdle(asked.run_id)).toMatchObject({ status: 'waiting_user' });
    expect(processesOf(asked.run_id)).toEqual(expect.arrayContaining(spawnedIn(await bench.events(asked.run_id))));
    const requests = bench.model.requests.length;
    const { interaction_id: id } = await bench.pending(asked.run_id);
    await bench.orchestrator.reply(asked.run_id, { interaction_id: id, response: { decision: 'approve' } });
    // The command has run, and the model hangs.
    await bench.model.received(requests + 1);
    expect(linesIn(bench.cwd, 'side.txt')).toEqual(['once']);
    await timers.armed(200_000);
    timers.advance(200_000);
    expect(await bench.waitUntilIdle(asked.run_id)).toMatchObject({
      status: 'failed',
      error: { code: 'TURN_TIMEOUT' },
    });
    expect(processesOf(asked.run_id)).toEqual([]);
  });
});

test('a process killed during a command takes the command along, and the run fails and keeps its output', async () => {
  const bench = await openResidents();
  const { run_id: runId } = await bench.create(
    '[[answer First some words.]] [[tool touch begun; sleep 600]] [[done 1]]',
  );
  await expect.poll(() => existsSync(join(bench.cwd, 'begun')), { timeout: 20_000 }).toBe(true);
  const [pid] = spawnedIn(await bench.events(runId));
  process.kill(pid as number, 'SIGKILL');
  expect(await bench.waitUntilIdle(runId)).toMatchObject({ status: 'failed', error: { code: 'ENGINE_EXITED' } });
  const events = await bench.events(runId);
  expect(dataOf(events, 'agent.message.final')).toMatchObject([{ text: 'First some words.' }]);
  expect(processesOf(runId)).toEqual([]);
  expectSameParsed(bench.data.path, runId, events);
});

// Measured with `codex exec`: it tries for 26 s at most.
test('a service that returns 401 or 500 or is cut off fails the run with its code and leaves no process', async () => {
  const bench = await openResidents({ settings: { slots: 3 } });
  const services = [
    ['http 401', 'ENGINE_AUTH_REQUIRED'],
    ['http 500', 'ENGINE_TURN_FAILED'],
    ['cut', 'ENGINE_TURN_FAILED'],
  ] as const;
  const runs = await Promise.all(
    services.map(([what]) =>
      bench.play(`[[${what}]]`, { runtime_options: { turn_timeout_sec: 120, idle_timeout_sec: 60 } }),
    ),
  );
  expect(runs.map(({ status, error }) => [status, error?.code])).toEqual(services.map(([, code]) => ['failed', code]));
  for (const { run_id: runId } of runs) {
    expect(processesOf(runId)).toEqual([]);
    expectSameParsed(bench.data.path, runId, await bench.events(runId));
  }
});

test('a service that cannot be reached fails the run with its code', async () => {
  const bench = await openResidents();
  await bench.model.close();
  const run = await bench.play('hello', { runtime_options: { turn_timeout_sec: 120, idle_timeout_sec: 60 } });
  expect(run).toMatchObject({ status: 'failed', error: { code: 'ENGINE_TURN_FAILED' } });
  expect(processesOf(run.run_id)).toEqual([]);
});
