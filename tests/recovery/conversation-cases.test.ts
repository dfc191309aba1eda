// A running turn that ends without its own writer: the conversation is what a reader of the events would fold, and the
// output of the turn is stored once.
import { mkdirSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { verifyRun } from '../../src/audit/verify-run.js';
import { createRun } from '../../src/commands/create-run.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { systemTimers } from '../../src/process/timers.js';
import { draft, type RaspDraft } from '../../src/rasp/draft.js';
import { recoverOrphans, type RecoveryWork } from '../../src/recovery/recover.js';
import { runError } from '../../src/run/run-error.js';
import type { RunAppend, RunRecord } from '../../src/store/store.js';
import { failBeforeStart } from '../../src/turn/begin-turn.js';
import { endFromLogs } from '../../src/turn/end-from-logs.js';
import { TurnWriter } from '../../src/turn/turn-writer.js';
import { alterStore } from '../support/altered-store.js';
import { CommandBench } from '../support/command-bench.js';

const SESSION = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';
const ENGINE_LOG = 'agents/main/runtime/events.jsonl';

let bench: CommandBench;
let failures: unknown[];
beforeEach(async () => {
  bench = await CommandBench.open();
  failures = [];
});
afterEach(() => bench.close());

function workOf(store = {}, files = {}): RecoveryWork {
  const { deps } = bench;
  return {
    deps: {
      ...deps,
      timers: systemTimers,
      store: alterStore(deps.store, store),
      files: { ...deps.files, ...files },
    },
    settings: { queued: 'fail' },
    journalFiles: { write: async () => {} },
    isRunHere: () => false,
    recovering: new Set(),
    cancels: new Map(),
    exclusively: (_runId, piece) => piece(),
    signal: new AbortController().signal,
    onFailure: (_runId, error) => void failures.push(error),
  };
}

const running = async (engine: string): Promise<RunRecord> =>
  bench.apply(await bench.queued({ engine }), { event: 'turn.started', epoch: 1 });

const load = async (runId: string): Promise<RunRecord> => (await bench.store.loadRun(runId)) as RunRecord;

const failedChecks = async (runId: string): Promise<string[]> =>
  (await verifyRun(bench.store, bench.deps.dataDir, await load(runId)))
    .filter(({ ok, name }) => !ok && ['conversation', 'rows', 'order', 'digest'].includes(name))
    .map(({ name, finding }) => `${name}: ${finding}`);

function print(type: 'agent.message.final' | 'raw.stdout', text: string, from: number): RaspDraft {
  return { ...draft(type, { text }), parser: 'codex', range: { stream: 'stdout', from, to: from + text.length + 1 } };
}

// A message, and a raw line with the same words: the conversation holds it back, because it may be an echo.
async function holdBack(run: RunRecord): Promise<void> {
  const writer = new TurnWriter(bench.deps, run, () => {});
  void writer.add([print('agent.message.final', 'hello there\nsecond', 0), print('raw.stdout', 'hello there', 20)]);
  await writer.flush();
}

function engineLog(run: RunRecord): string {
  const folder = runFolder(bench.deps.dataDir, run.run_id).path;
  mkdirSync(`${folder}/agents/main/runtime`, { recursive: true });
  return `${folder}/${ENGINE_LOG}`;
}

test('a line that the conversation held back is in it after the run ended without its logs', async () => {
  const run = await running('codex');
  await holdBack(run);
  const before = (await load(run.run_id)).heads.fcmp_seq;
  await recoverOrphans(workOf({}, { isHere: async () => false }));
  const lines = await bench.store.readJournal(run.run_id, 'fcmp', { fromSeq: before + 1, limit: 9 });
  expect(lines[0]).toContain('hello there');
  expect(await failedChecks(run.run_id)).toEqual([]);
  expect(failures).toEqual([]);
});

test('a line that the conversation held back is in it after the run ended with unreadable logs', async () => {
  const run = await running('codex');
  await holdBack(run);
  // A folder in the place of the log.
  mkdirSync(runFolder(bench.deps.dataDir, run.run_id).attempt(1).logs.stdout, { recursive: true });
  await recoverOrphans(workOf());
  expect((await load(run.run_id)).status).toBe('failed');
  expect(await failedChecks(run.run_id)).toEqual([]);
  expect(failures).toHaveLength(1);
});

test.each(['{', '{}', 'null', '[]'])('a run whose journal has the damaged line %s still ends', async (line) => {
  const run = await running('codex');
  await holdBack(run);
  let reads = 0;
  const readJournal = async () => ((reads += 1) % 2 === 1 ? [line] : []);
  await recoverOrphans(workOf({ readJournal }, { isHere: async () => false }));
  await recoverOrphans(workOf({ readJournal }));
  expect((await load(run.run_id)).status).toBe('failed');
});

test('output that a resident engine printed after its last turn is kept when the next turn cannot start', async () => {
  const run = await bench.queued({ engine: 'codex-app-server' });
  writeFileSync(engineLog(run), 'a late line\n');
  const ended = await failBeforeStart(bench.deps, run, runError('ORCHESTRATOR_RESTART_INTERRUPTED.running'));
  expect(ended.status).toBe('failed');
  const events = await bench.eventsOf(run.run_id);
  expect(events.filter(({ event }) => event.type === 'raw.stdout').map(({ data }) => data.text)).toEqual([
    'a late line',
  ]);
  expect(events.map(({ event }) => event.type)).toContain('lifecycle.process.ended');
});

test('the output of a resident engine is stored once, although the end of its turn could not be stored', async () => {
  const run = await running('codex-app-server');
  writeFileSync(engineLog(run), 'not json 1\nnot json 2\n');
  let hasFailed = false;
  const append = async (change: RunAppend) => {
    const isFailing = change.after.turn !== null && !hasFailed;
    hasFailed ||= isFailing;
    if (isFailing) throw new Error('disk I/O error');
    return bench.store.append(change);
  };
  await recoverOrphans(workOf({ append }));
  expect((await load(run.run_id)).status).toBe('failed');
  expect(failures).toEqual([new Error('disk I/O error')]);
  const texts = (await bench.eventsOf(run.run_id)).filter(({ event }) => event.type === 'raw.stdout');
  expect(texts.map(({ data }) => data.text)).toEqual(['not json 1', 'not json 2']);
  expect(await failedChecks(run.run_id)).toEqual([]);
});

test('a run whose session ends with its process stores no session when its first turn is interrupted', async () => {
  bench.stub.resume = { resumes: false } as never;
  const deps = { ...bench.deps, mayNeedProcess: true, timers: systemTimers };
  const request = { engine: 'codex-app-server', prompt: 'x', execution_mode: 'interactive' } as const;
  const run = await bench.apply(await createRun(deps, request, {}), { event: 'turn.started', epoch: 1 });
  expect(run.spec.sticky).toBe(true);
  const thread = { id: SESSION, sessionId: SESSION, status: null, turns: [] };
  const lines = [
    { id: 2, result: { thread, model: 'm' } },
    { method: 'thread/started', params: { thread } },
  ];
  writeFileSync(engineLog(run), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const error = runError('ORCHESTRATOR_RESTART_INTERRUPTED.running');
  await endFromLogs({ ...deps, runtime: { ...deps.runtime, hasSession: async () => true } }, run, () => ({
    event: 'restart.reconcile_failed',
    error,
  }));
  const types = (await bench.eventsOf(run.run_id)).map(({ event }) => event.type);
  expect(types).toContain('lifecycle.session.bound');
  expect(types).not.toContain('lifecycle.session.confirmed');
  expect(await bench.store.loadHandle(run.request_id)).toBeNull();
});
