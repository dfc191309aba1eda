// Parley really killed, at every kind of store write and at other times, and started again on the remaining data. 30
// seeded cases; PARLEY_CRASH_RUNS sets more, PARLEY_SEED others. Needs the build: the victim runs from dist/.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { CreateRunRequest } from '../../src/commands/create-request.js';
import type { OrchestratorSettings } from '../../src/orchestrator/orchestrator-settings.js';
import { isTerminal } from '../../src/run/statechart.js';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import type { InteractionRecord, RunRecord, Store } from '../../src/store/store.js';
import { createRoot, expectSound, journalOf, openBench, startsIn, type Bench } from '../support/orchestrated.js';
import { seededRandom } from '../support/seeded-random.js';
import { STAND_INS } from '../support/stand-in.js';

const CASES = Number(process.env['PARLEY_CRASH_RUNS'] ?? 30);
const SEED = Number(process.env['PARLEY_SEED'] ?? 1);
const CHILD = fileURLToPath(new URL('../support/crash-child.mjs', import.meta.url));
// A victim that neither dies nor ends is killed; the case then fails by itself.
const CHILD_LIMIT_MS = 30_000;
const RESPONSE = 'Postgres';

// The agent's text is repeated on stderr in two parts, so that a kill may hit lines that are held back as an echo.
const WORK =
  '[[answer stand-in: line 1 of 2\nstand-in: line 2 of 2]][[stderr 2]][[sleep 15]][[stderr 2]][[utf8]][[events 20 80]]';
const ONE_QUESTION = `${WORK}[[ask Which database?|Postgres|SQLite]]${WORK}[[done {"ok":true}]]`;
const TWO_QUESTIONS =
  `${WORK}[[ask Which database?|Postgres|SQLite]][[orphan]]${WORK}[[ask Go on?]][[answer ` +
  'Going on.]][[done {"ok":true}]]';

type Kill =
  // The write of that kind in that turn, counted over the life of the victim.
  | {
      readonly kind: 'create' | 'start' | 'flush' | 'ask' | 'reply' | 'end';
      readonly turn: number;
      readonly moment: 'before' | 'after';
    }
  // The n-th store call of any kind, or some event-loop ticks after it.
  | { readonly call: number; readonly moment: 'before' | 'after' | 'later'; readonly ticks: number };

interface Case {
  readonly name: string;
  readonly requests: readonly CreateRunRequest[];
  readonly slots: number;
  readonly queued: OrchestratorSettings['recovery']['queued'];
  // One after the other, on the same directory: the second victim dies during recovery or soon after it.
  readonly kills: readonly Kill[];
}

const WRITES = [
  ['create', 0],
  ['start', 1],
  ['flush', 1],
  ['ask', 1],
  ['reply', 1],
  ['start', 2],
  ['flush', 2],
  ['end', 2],
] as const;

function requestFor(index: number, engine: string, prompt: string): CreateRunRequest {
  return { engine, prompt, execution_mode: 'interactive', permission: 'full', request_id: `conversation-${index}` };
}

// With many cases, each write is tried with every engine; with few, the engines take turns.
function* casesAtWrites(): Generator<Case> {
  for (let round = 0; round < (CASES >= 100 ? STAND_INS.length : 1); round += 1) {
    for (const [index, [kind, turn]] of WRITES.entries()) {
      for (const moment of ['before', 'after'] as const) {
        const engine = STAND_INS[(index + round + (moment === 'after' ? 1 : 0)) % STAND_INS.length] ?? 'codex';
        const queued = (index + round) % 2 === 0 ? 'requeue' : 'fail';
        yield {
          name: `${engine} killed ${moment} ${kind} in turn ${turn}, queued runs ${queued}`,
          requests: [requestFor(1, engine, ONE_QUESTION)],
          slots: 1,
          queued,
          kills: [{ kind, turn, moment }],
        };
      }
    }
  }
}

function randomCase(seed: number): Case {
  // Neighbouring seeds give similar first numbers with such a small source: spread out.
  const random = seededRandom(Math.imul(seed, 2_654_435_761));
  random(1);
  const pick = <T>(items: readonly T[]): T => items[random(items.length)] as T;
  // A conversation makes about fifty calls; a victim that finishes before its kill is a case as well.
  const kill = (calls: number): Kill => ({
    call: 1 + random(calls),
    moment: pick(['before', 'after', 'later', 'later']),
    ticks: random(2 ** (1 + random(12))),
  });
  const requests = [
    requestFor(1, pick(STAND_INS), TWO_QUESTIONS),
    ...(random(2) === 0 ? [] : [requestFor(2, pick(STAND_INS), ONE_QUESTION)]),
  ];
  const queued = pick(['requeue', 'fail'] as const);
  const kills = [kill(45 * requests.length), ...(random(3) === 0 ? [kill(12)] : [])];
  const slots = 1 + random(2);
  return {
    name:
      `seed ${seed}: ${requests.map(({ engine }) => engine).join(' and ')} killed ` +
      `${kills.map((one) => JSON.stringify(one)).join(' then ')}, queued runs ${queued}`,
    requests,
    slots,
    queued,
    kills,
  };
}

function listCases(): Case[] {
  const cases = [...casesAtWrites()].slice(0, CASES);
  while (cases.length < CASES) cases.push(randomCase(SEED * 1_000_003 + cases.length));
  return cases;
}

interface Promised {
  readonly created: string[];
  readonly accepted: string[];
}

// The confirmations that the victim received before it died; it may also have finished.
async function runVictim(
  root: string,
  { requests, slots, queued }: Case,
  kill: Kill,
): Promise<Promised & { readonly killed: boolean }> {
  const child = spawn(
    process.execPath,
    [CHILD, JSON.stringify({ root, requests, response: RESPONSE, slots, queued, kill })],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let hung = false;
  const limit = setTimeout(() => {
    hung = true;
    child.kill('SIGKILL');
  }, CHILD_LIMIT_MS);
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  clearTimeout(limit);
  expect(hung, 'the victim hung').toBe(false);
  expect(code ?? signal, stderr).toBe(signal === null ? 0 : 'SIGKILL');
  const facts = stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { created?: string; accepted?: string });
  return {
    killed: signal !== null,
    created: facts.flatMap(({ created }) => created ?? []),
    accepted: facts.flatMap(({ accepted }) => accepted ?? []),
  };
}

interface Kept {
  readonly run: RunRecord;
  readonly interactions: readonly InteractionRecord[];
}

async function readKept(store: Store): Promise<Kept[]> {
  const runs = await store.listRuns({ limit: 1000 });
  return Promise.all(runs.map(async (run) => ({ run, interactions: await interactionsOf(store, run.run_id) })));
}

async function interactionsOf(store: Store, runId: string): Promise<InteractionRecord[]> {
  const lines = await store.readJournal(runId, 'rasp', { limit: 1_000_000 });
  const asked = lines
    .map((line) => JSON.parse(line) as { event: { type: string }; data: { interaction_id: string } })
    .filter(({ event }) => event.type === 'interaction.requested');
  return Promise.all(
    asked.map(async ({ data }) => (await store.loadInteraction(data.interaction_id)) as InteractionRecord),
  );
}

// Reads only: no recovery.
async function readLeftBehind(root: string): Promise<Kept[]> {
  const data = await openDataDir(join(root, 'data'), { pid: process.pid });
  const kept = await readKept(data.store);
  await data.close();
  return kept;
}

const INTERRUPTED = { status: 'failed', error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' } };

// The allowed results of recovery for a run, and the data that it must not touch.
function expectRecovered(before: Kept, after: Kept, queued: Case['queued']): void {
  const { run } = after;
  if (before.run.status === 'running') expect(run).toMatchObject(INTERRUPTED);
  else if (before.run.status === 'waiting_user') expect(run.status).toBe('waiting_user');
  else if (isTerminal(before.run.status)) expect(after).toEqual(before);
  else if (queued === 'fail') expect(run).toMatchObject(INTERRUPTED);
  else
    expect(
      run.status === 'waiting_user' || run.status === 'succeeded',
      `${run.status} ${JSON.stringify(run.error)}`,
    ).toBe(true);
  // Earlier questions: an answered one keeps its answer, a pending one still exists.
  expect(after.interactions.slice(0, before.interactions.length)).toEqual(before.interactions);
}

async function finishRuns(bench: Bench): Promise<Kept[]> {
  for (const { run } of await readKept(bench.data.store)) {
    await bench.orchestrator.waitUntilIdle(run.run_id);
    await expectSound(bench, run.run_id);
    await expectNothingTwice(bench, run.run_id);
  }
  return readKept(bench.data.store);
}

// Parser reports without a position are stored once per turn, also if the turn was interrupted.
async function expectNothingTwice(bench: Bench, runId: string): Promise<void> {
  const { rasp } = await journalOf(bench, runId);
  const reports = rasp
    .filter(({ raw_ref: ref, source }) => ref === null && source.parser !== 'orchestrator')
    .map(({ attempt_number: attempt, event, data }) => JSON.stringify([attempt, event.type, data]));
  expect(reports).toEqual([...new Set(reports)]);
}

// The client repeats requests whose response it may have missed, and answers until the run ends.
async function converse(bench: Bench, request: CreateRunRequest): Promise<RunRecord> {
  const { run_id: runId } = await bench.orchestrator.create(request);
  for (
    let run = await bench.orchestrator.waitUntilIdle(runId);
    run.status === 'waiting_user';
    run = await bench.orchestrator.waitUntilIdle(runId)
  ) {
    const pending = await bench.data.store.loadPendingInteraction(runId);
    await bench.orchestrator.reply(runId, { interaction_id: pending?.interaction_id ?? '', response: RESPONSE });
  }
  return expectSound(bench, runId);
}

function expectStartedOnce(root: string): void {
  const starts = startsIn(root);
  const marks = starts.map(({ env }) => env['PARLEY_TURN'] ?? '');
  expect(marks, 'a turn was started twice').toEqual([...new Set(marks)]);
  for (const { env, resumed } of starts) expect(resumed).toBe(!env['PARLEY_TURN']?.endsWith('/1'));
}

function foldersIn(root: string): string[] {
  const path = join(root, 'data', 'runs');
  return existsSync(path) ? readdirSync(path) : [];
}

async function check(one: Case): Promise<void> {
  const root = createRoot();
  const promised: Promised = { created: [], accepted: [] };
  let left: Kept[] = [];
  for (const kill of one.kills) {
    const { killed, created, accepted } = await runVictim(root, one, kill);
    if ('kind' in kill) expect(killed, 'the moment never came').toBe(true);
    promised.created.push(...created);
    promised.accepted.push(...accepted);
    left = await readLeftBehind(root);
  }
  for (const id of promised.created) expect(left.map(({ run }) => run.run_id)).toContain(id);
  const answered = left.flatMap(({ interactions }) => interactions).filter(({ state }) => state === 'answered');
  for (const id of promised.accepted)
    expect(answered).toContainEqual(
      expect.objectContaining({ interaction_id: id, resolution: expect.objectContaining({ response: RESPONSE }) }),
    );

  const bench = await openBench(root, { settings: { slots: one.slots, recovery: { queued: one.queued } } });
  try {
    const recovered = await finishRuns(bench);
    expect(recovered).toHaveLength(left.length);
    for (const before of left)
      expectRecovered(before, recovered.find(({ run }) => run.run_id === before.run.run_id) as Kept, one.queued);
    for (const request of one.requests) {
      const ended = await converse(bench, request);
      if (ended.status === 'succeeded') expect(ended.result).toEqual({ ok: true });
      else expect(ended).toMatchObject(INTERRUPTED);
    }
    const ended = await finishRuns(bench);
    expect(ended).toHaveLength(one.requests.length);
    for (const { interactions } of ended)
      expect(
        interactions.filter(({ state, resolution }) => state !== 'answered' || resolution?.response !== RESPONSE),
      ).toEqual([]);
    expectStartedOnce(root);
    // No folder without its run.
    expect(ended.map(({ run }) => run.run_id)).toEqual(expect.arrayContaining(foldersIn(root)));
  } finally {
    await bench.close();
  }
}

describe('killed and opened again, no run is stuck, no answer is lost or given twice, no byte is missing', () => {
  test.each(listCases().map((one) => [one.name, one] as const))('%s', async (_name, one) => {
    await check(one);
  });
});
