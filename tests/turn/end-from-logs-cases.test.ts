// The end of a turn from its logs: output without events is stored once, and question and session are kept.
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { appendAsk } from '../../src/ask/ask-file.js';
import { createRun } from '../../src/commands/create-run.js';
import { createTurnParser, findEngine } from '../../src/engines/registry.js';
import { ConversationFold, foldInputOf } from '../../src/fcmp/fold.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { logsOf } from '../../src/journal/turn-logs.js';
import { toTimestamp } from '../../src/kernel/clock.js';
import { draft, type RaspDraft } from '../../src/rasp/draft.js';
import type { RaspData, RaspEvent } from '../../src/rasp/event.js';
import type { RunRecord } from '../../src/store/store.js';
import { endFromLogs, type Ending } from '../../src/turn/end-from-logs.js';
import { TurnWriter } from '../../src/turn/turn-writer.js';
import { CommandBench } from '../support/command-bench.js';

const SESSION = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';
const STARTED = { type: 'thread.started', thread_id: SESSION };
const message = (text: string) => ({ type: 'item.completed', item: { id: 'item_1', type: 'agent_message', text } });
const FAILED: Ending = { event: 'turn.failed', error: { code: 'INTERNAL', message: 'The turn could not be run.' } };

let bench: CommandBench;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => bench.reset());
afterAll(() => bench.close());

const linesOf = (...lines: readonly object[]): string => lines.map((line) => `${JSON.stringify(line)}\n`).join('');

function writeLogs(run: RunRecord, stdout: string, stderr = ''): void {
  const folder = runFolder(bench.deps.dataDir, run.run_id);
  const logs = logsOf(findEngine(run.spec.engine), folder, run.attempt_number);
  mkdirSync(folder.attempt(run.attempt_number).path, { recursive: true });
  mkdirSync(dirname(logs.stdout), { recursive: true });
  writeFileSync(logs.stdout, stdout);
  writeFileSync(logs.stderr, stderr);
}

async function store(run: RunRecord, ...drafts: readonly RaspDraft[]): Promise<RunRecord> {
  const writer = new TurnWriter(bench.deps, run, () => {});
  void writer.add(drafts);
  await writer.flush();
  return writer.run;
}

async function end(run: RunRecord, ending: Ending = FAILED): Promise<RaspEvent[]> {
  const outcome = await endFromLogs(bench.deps, run, () => ending);
  expect(outcome.applied).toBe(true);
  return bench.eventsOf(run.run_id);
}

const dataOf = <T extends keyof RaspData>(events: readonly RaspEvent[], type: T): RaspData[T] | undefined =>
  events.findLast(({ event }) => event.type === type)?.data as unknown as RaspData[T] | undefined;
const textsOf = (events: readonly RaspEvent[], type: string): unknown[] =>
  events.filter(({ event }) => event.type === type).map(({ data }) => data.text);

test('a turn without logs ends with empty streams', async () => {
  const run = await bench.running();
  const ended = dataOf(await end(run), 'lifecycle.turn.ended');
  expect(ended).toMatchObject({
    exit: { code: null, signal: null },
    completion: { result: 'interrupted', reason_code: 'INTERNAL' },
    streams: { stdout: { bytes: 0 }, stderr: { bytes: 0 } },
    parser: { units: 0, hit_rate: null },
    digest: run.heads.digest,
  });
  expect(await bench.store.loadRun(run.run_id)).toMatchObject({ status: 'failed', error: FAILED.error });
});

test('a canceled turn ends with who canceled it and without an error', async () => {
  const run = await bench.running();
  const events = await end(run, { event: 'run.canceled', actor: { kind: 'token', name: 'ann' } });
  expect(dataOf(events, 'lifecycle.turn.ended')?.completion.reason_code).toBe('CANCELED_BY_USER');
  expect(dataOf(events, 'lifecycle.state.changed')).toMatchObject({ to: 'canceled', actor: { name: 'ann' } });
});

test('output of both streams that has no events yet is stored, and the digest covers it', async () => {
  const run = await bench.running();
  const stdout = linesOf(STARTED, message('one'));
  writeLogs(run, stdout, 'a warning\n');
  const events = await end(run);
  expect(textsOf(events, 'agent.message.final')).toEqual(['one']);
  expect(textsOf(events, 'raw.stderr')).toEqual(['a warning']);
  const ended = dataOf(events, 'lifecycle.turn.ended');
  expect(ended?.streams).toMatchObject({ stdout: { bytes: stdout.length }, stderr: { bytes: 10 } });
  expect(ended?.digest).not.toBe(run.heads.digest);
});

test('output that has events is not stored twice, but equal lines are all stored', async () => {
  const run = await bench.running();
  const stdout = linesOf(STARTED, message('one'), message('one'), message('two'));
  writeLogs(run, stdout);
  const parser = createTurnParser(findEngine('codex'));
  const first = linesOf(STARTED, message('one'));
  const stored = await store(run, ...parser.push('stdout', Buffer.from(first)));
  const events = await end(stored);
  expect(textsOf(events, 'agent.message.final')).toEqual(['one', 'one', 'two']);
  expect(events.filter(({ event }) => event.type === 'lifecycle.session.bound')).toHaveLength(1);
});

test('a last line without its end is stored', async () => {
  const run = await bench.running();
  writeLogs(run, JSON.stringify(message('cut')));
  expect(textsOf(await end(run), 'agent.message.final')).toEqual(['cut']);
});

test('events of Parley and of other turns are not output of this turn', async () => {
  const run = await bench.running();
  const text = '{"ask_user":{"prompt":"Which?"}}';
  // The same report without a place, written by Parley.
  const own = draft('agent.message.final', { text: 'one' });
  const stored = await store(run, own);
  writeLogs(stored, linesOf(STARTED, message('one'), message(text)));
  const events = await end(stored);
  expect(textsOf(events, 'agent.message.final').filter((one) => one === 'one')).toHaveLength(2);
});

const COLOURED = `\u001b[31m${JSON.stringify(message('one'))}\u001b[0m\n`;
const warningsOf = (events: readonly RaspEvent[], code: string): number[] =>
  events.filter(({ data }) => data.code === code).map(({ attempt_number: attempt }) => attempt);

test('a report without a place in the log is not stored twice', async () => {
  const run = await bench.running();
  writeLogs(run, COLOURED);
  const parser = createTurnParser(findEngine('codex'));
  const stored = await store(run, ...parser.push('stdout', Buffer.from(COLOURED)), ...parser.finish());
  expect(warningsOf(await end(stored), 'ANSI_SEQUENCES')).toEqual([1]);
});

test('the same report of an earlier turn does not hide the report of this turn', async () => {
  const parser = createTurnParser(findEngine('codex'));
  const first = await store(await bench.running(), ...parser.push('stdout', Buffer.from(COLOURED)), ...parser.finish());
  const { run: waiting, question } = await bench.ask(first);
  const accepted = draft('interaction.reply.accepted', {
    interaction_id: question.interaction_id,
    accepted_at: toTimestamp(bench.clock.at),
    resolution_mode: 'user_reply',
    response: 'Red.',
  });
  const queued = await bench.apply(waiting, { event: 'interaction.reply.accepted', before: [accepted] });
  const run = await bench.apply(queued, { event: 'turn.started' });
  writeLogs(run, COLOURED);
  expect(warningsOf(await end(run), 'ANSI_SEQUENCES')).toEqual([1, 2]);
});

test('a different report without a place is stored', async () => {
  const run = await bench.running();
  writeLogs(run, COLOURED);
  const parser = createTurnParser(findEngine('codex'));
  const line = Buffer.from(`\ufeff${JSON.stringify(message('one'))}\n`);
  const stored = await store(run, ...parser.push('stdout', line), ...parser.finish());
  const events = await end(stored);
  expect(warningsOf(events, 'BYTE_ORDER_MARK')).toEqual([1]);
  expect(warningsOf(events, 'ANSI_SEQUENCES')).toEqual([1]);
});

test('a report of Parley with the same content does not hide the report of the parser', async () => {
  const parser = createTurnParser(findEngine('codex'));
  parser.push('stdout', Buffer.from(COLOURED));
  const [report] = parser.finish();
  if (report === undefined) throw new Error('the parser reports nothing at the end');
  const run = await bench.running();
  const stored = await store(run, draft('diagnostic.parser.warning', report.data as never));
  writeLogs(stored, COLOURED);
  expect(warningsOf(await end(stored), 'ANSI_SEQUENCES')).toHaveLength(2);
});

test.each([0, 1, 2, 3])('with %i of three reports of one line stored, the rest is stored', async (count) => {
  const changes = ['a', 'b', 'c'].map((path) => ({ path, kind: 'add' }));
  const item = { id: 'item_1', type: 'file_change', status: 'completed', changes };
  const line = linesOf({ type: 'item.completed', item });
  const drafts = createTurnParser(findEngine('codex')).push('stdout', Buffer.from(line));
  const run = await bench.running();
  const stored = await store(run, ...drafts.slice(0, drafts.length - changes.length + count));
  writeLogs(stored, line);
  const paths = (await end(stored)).filter(({ event }) => event.type === 'artifact.file.changed');
  expect(paths.map(({ data }) => data.path)).toEqual(['a', 'b', 'c']);
});

test('the conversation continues with the lines that the fold held back', async () => {
  const run = await bench.running();
  const echo = ['first line', 'second line', 'third line'];
  const stdout = `${linesOf(message(echo.join('\n')))}${echo.join('\n')}\n`;
  writeLogs(run, stdout);
  const parser = createTurnParser(findEngine('codex'));
  // Two of the three raw lines that repeat the agent are stored: too few to be an echo.
  const stored = await store(
    run,
    ...parser.push('stdout', Buffer.from(stdout.slice(0, stdout.indexOf('third line\n')))),
  );
  const events = await end(stored);
  const fold = new ConversationFold(run.run_id);
  const expected = events.flatMap((event) => fold.push(foldInputOf(event)));
  const lines = await bench.store.readLines(run.run_id, 'fcmp', 0, 1024 * 1024);
  expect(lines?.bytes.toString().trimEnd().split('\n')).toEqual(expected.map((line) => line.trimEnd()));
});

describe('the question of an interrupted turn', () => {
  test('is taken from the output', async () => {
    const run = await bench.running();
    writeLogs(run, linesOf(STARTED, message('{"ask_user":{"prompt":"Which?"}}')));
    await end(run);
    expect((await bench.store.loadRun(run.run_id))?.error?.details).toMatchObject({ unanswered: { prompt: 'Which?' } });
  });

  test('is taken from the file of the tool, if the engine did not print it', async () => {
    const run = await bench.running();
    writeLogs(run, linesOf(STARTED));
    const { asks } = runFolder(bench.deps.dataDir, run.run_id).attempt(1);
    appendAsk(asks, 'any', { type: 'asked', question: { prompt: 'When?' } });
    appendFileSync(asks, '{"type":"asked"');
    await end(run);
    expect((await bench.store.loadRun(run.run_id))?.error?.details).toMatchObject({ unanswered: { prompt: 'When?' } });
  });
});

describe('the session of an interrupted turn', () => {
  test('is confirmed if the output names it and it exists', async () => {
    const run = await bench.running();
    writeLogs(run, linesOf(STARTED));
    const events = await end(run);
    expect(dataOf(events, 'lifecycle.session.confirmed')?.session).toMatchObject({ session_id: SESSION });
    expect(await bench.store.loadHandle(run.request_id)).toMatchObject({
      handle_value: SESSION,
      cwd: run.spec.cwd,
      home: run.spec.home,
      created_at_attempt: 1,
    });
  });

  test.each([
    ['it does not exist', false],
    ['it cannot be looked up', new Error('the home cannot be read')],
  ])('is not confirmed if %s', async (_why, hasSession) => {
    bench.stub.hasSession = hasSession;
    const run = await bench.running();
    writeLogs(run, linesOf(STARTED));
    expect(dataOf(await end(run), 'lifecycle.session.confirmed')).toBeUndefined();
  });

  test('is not confirmed again if one is stored', async () => {
    const { run: waiting } = await bench.waiting();
    const queued = await bench.apply(waiting, { event: 'interaction.reply.accepted' });
    const run = await bench.apply(queued, { event: 'turn.started' });
    writeLogs(run, linesOf(STARTED));
    const events = await end(run);
    expect(events.filter(({ event }) => event.type === 'lifecycle.session.confirmed')).toHaveLength(1);
  });
});

test('an unknown line is reported with the version that this turn started with', async () => {
  const { run: waiting } = await bench.waiting();
  const queued = await bench.apply(waiting, { event: 'interaction.reply.accepted' });
  const data = { argv: [], resumed: true, engine_version: '0.166.0', cwd: '/work' };
  const started = draft('lifecycle.turn.started', data);
  const run = await bench.apply(queued, { event: 'turn.started', before: [started] });
  writeLogs(run, linesOf({ type: 'thread.dreaming' }));
  const warning = (await end(run)).find(({ data }) => data.code === 'UNKNOWN_EVENT_TYPE');
  expect(warning?.data.engine_version).toBe('0.166.0');
});

function processEnded({ stdout, stderr }: Record<'stdout' | 'stderr', number>): RaspDraft {
  return draft('lifecycle.process.ended', {
    streams: { stdout: { bytes: stdout, sha256: '' }, stderr: { bytes: stderr, sha256: '' } },
  });
}

async function resident(): Promise<RunRecord> {
  const request = { engine: 'codex-app-server', prompt: 'Go.', execution_mode: 'interactive' } as const;
  return bench.apply(await createRun(bench.deps, request, {}), { event: 'turn.started' });
}

const note = (text: string) => ({ method: 'warning', params: { message: text } });

const opened = (thread: string) => ({ id: 1, result: { thread: { id: thread } } });
const said = (thread: string, text: string) => ({
  method: 'item/completed',
  params: { threadId: thread, turnId: 't', item: { type: 'agentMessage', id: 'i', text } },
});

async function endLater(earlier: string, later: string): Promise<RaspEvent[]> {
  const stored = await store(await resident(), processEnded({ stdout: earlier.length, stderr: 0 }));
  writeLogs(stored, earlier + later);
  return end(stored);
}

describe('a resident engine', () => {
  test('has one log for all turns: the part of earlier turns is not read again', async () => {
    const run = await resident();
    const [earlier, later] = [linesOf(note('one')), linesOf(note('two'), note('three'))];
    const stored = await store(run, processEnded({ stdout: earlier.length, stderr: 2 }));
    writeLogs(stored, earlier + later, 'a\nb\n');
    const events = await end(stored);
    expect(dataOf(events, 'lifecycle.turn.ended')?.streams).toMatchObject({
      stdout: { from: earlier.length, bytes: later.length },
      stderr: { from: 2, bytes: 2 },
    });
    expect(textsOf(events, 'raw.stderr')).toEqual(['b']);
    const ranges = events.flatMap(({ raw_ref: ref }) => (ref?.stream === 'stdout' ? [ref.byte_from] : []));
    expect(Math.min(...ranges)).toBe(earlier.length);
  });

  test('keeps its session from earlier turns: a message of another thread is not one of the agent', async () => {
    // Longer than one chunk that is read from the log.
    const earlier = linesOf(opened('main'), ...Array.from({ length: 3000 }, () => note('x'.repeat(100))));
    const events = await endLater(earlier, linesOf(said('other', 'aside'), said('main', 'one')));
    expect(textsOf(events, 'agent.message.final')).toEqual(['one']);
  });

  test('takes nothing of this turn for its session of earlier turns', async () => {
    // Longer than one chunk that is read from the log, before and after the thread changes.
    const padding = Array.from({ length: 4 }, () => note('x'.repeat(100_000)));
    const later = linesOf(...padding, said('main', 'one'), opened('other'), ...padding);
    const events = await endLater(linesOf(opened('main')), later);
    expect(textsOf(events, 'agent.message.final')).toEqual(['one']);
  });

  test('is read from the start of its log in its first turn', async () => {
    const run = await resident();
    const stdout = linesOf(note('one'));
    writeLogs(run, stdout);
    expect(dataOf(await end(run), 'lifecycle.turn.ended')?.streams.stdout).toMatchObject({ bytes: stdout.length });
  });
});

test('an engine with a log per turn is read from the start of the log in a later turn', async () => {
  const { run: waiting } = await bench.waiting();
  const queued = await bench.apply(waiting, { event: 'interaction.reply.accepted' });
  const run = await bench.apply(queued, { event: 'turn.started' });
  const stored = await store(run, processEnded({ stdout: 5, stderr: 0 }));
  writeLogs(stored, linesOf(message('one')));
  expect(textsOf(await end(stored), 'agent.message.final')).toEqual(['one']);
});
