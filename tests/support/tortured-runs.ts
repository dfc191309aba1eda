// The runs of the torture tests: their script, their answers, cancels and deletions, and the expected result.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import type { ParleyClient } from '../../src/client/client.js';
import { ParleyError } from '../../src/client/parley-error.js';
import type { TracedProcess } from './engine-trace.js';
import type { Hosts } from './hosts.js';
import type { seededRandom } from './seeded-random.js';
import type { Persistence } from './persistence.js';

// asks: a person answers twice. approves: the same, while a process waits. decides: no answer comes, and the question
// soon times out.
const KINDS = ['asks', 'approves', 'decides'] as const;
const QUESTIONS = 2;

export interface Tortured {
  // hangs: runs until it is canceled.
  readonly kind: (typeof KINDS)[number] | 'hangs';
  readonly request: Parameters<ParleyClient['create']>[0];
  // The delay until it is canceled, in any state.
  readonly cancelAfterMs: number | null;
  readonly isDeleted: boolean;
  // The file that its approved commands write to, each once.
  readonly marks: readonly string[];
  runId: string;
  // The response to the cancel request.
  canceled: boolean | null;
  lastSeq: number;
}

export function planRuns(
  count: number,
  seed: number,
  random: ReturnType<typeof seededRandom>,
  { site }: Pick<Hosts, 'site'>,
): Tortured[] {
  return Array.from({ length: count }, (_, number): Tortured => {
    const kind = KINDS[number % KINDS.length] ?? 'asks';
    const marks = kind === 'approves' ? [1, 2].map((question) => `mark-${number}-${question}.`) : [];
    const approved = join(site.root, 'approved.txt');
    const prompt = {
      asks:
        `[[events ${5 + random(40)} 60]] [[ask Go on?]] [[sleep ${random(1500)}]] [[events 20 60]] [[ask ` +
        `Again?]] [[done ${number}]]`,
      approves: [
        `[[noise ${random(40)}]]`,
        marks.map((mark) => `[[approve echo ${mark} >> ${approved}]]`).join(` [[work ${random(800)}]] `),
        `[[done ${number}]]`,
      ].join(' '),
      decides: `[[events 5 60]] [[ask Go on?]] [[sleep ${random(800)}]] [[ask Again?]] [[done ${number}]]`,
    }[kind];
    return {
      kind,
      request: {
        engine: kind === 'approves' ? 'codex-app-server' : 'rehearsal',
        prompt,
        execution_mode: 'interactive',
        request_id: `torture-${seed}-${number}`,
        labels: { kind },
        ...(kind === 'decides'
          ? { runtime_options: { session_timeout_sec: 2, interactive_require_user_reply: false } }
          : {}),
      },
      // Of each kind some are canceled, some deleted, some both.
      cancelAfterMs: random(4) === 0 ? random(7000) : null,
      isDeleted: random(5) === 0,
      marks,
      runId: '',
      canceled: null,
      lastSeq: 0,
    };
  });
}

// A run whose engine can be killed or stopped.
export function planIdle(number: number, seed: number): Tortured {
  return {
    kind: 'hangs',
    request: {
      engine: 'rehearsal',
      prompt: '[[events 5 60]] [[hang]]',
      request_id: `idle-${seed}-${number}`,
      labels: { kind: 'hangs' },
    },
    cancelAfterMs: 3000,
    isDeleted: false,
    marks: [],
    runId: '',
    canceled: null,
    lastSeq: 0,
  };
}

// Through all states of the run.
export async function live(world: Persistence, run: Tortured): Promise<void> {
  const canceling = cancelLater(world, run);
  run.lastSeq = await world.watch(run.runId);
  await canceling;
  if (run.isDeleted) await unlessCode(['RUN_NOT_FOUND'], () => world.somewhere((client) => client.delete(run.runId)));
}

async function cancelLater(world: Persistence, run: Tortured): Promise<void> {
  if (run.cancelAfterMs === null) return;
  await pause(run.cancelAfterMs);
  const answer = await unlessCode(['RUN_ENDED'], () => world.somewhere((client) => client.cancel(run.runId)));
  if (answer) expect(answer.status).toBe('canceled');
  run.canceled = answer !== null;
}

// Each answer can be recognised by the id of its question. `onTaken` receives the accepted answers, and may send them
// again.
export async function answerAll(
  world: Persistence,
  isDone: () => boolean,
  onTaken: (runId: string, interactionId: string, again: () => Promise<unknown>) => Promise<void> = async () => {},
): Promise<void> {
  while (!isDone()) {
    const { interactions } = await world.somewhere((client) => client.inbox({ limit: 200 }));
    for (const { run_id: runId, interaction_id: id, labels } of interactions) {
      if (labels['kind'] === 'decides') continue;
      const response = labels['kind'] === 'approves' ? { decision: 'approve' } : answerTo(id);
      // The run was ended or deleted meanwhile, or the answer exists already.
      const reply = () =>
        unlessCode(['RUN_NOT_WAITING', 'INTERACTION_STALE', 'RUN_ENDED', 'RUN_NOT_FOUND'], () =>
          world.somewhere((client) =>
            client.reply(runId, { interaction_id: id, response, idempotency_key: `key-${id}` }),
          ),
        );
      if (await reply()) await onTaken(runId, id, reply);
    }
    await pause(200);
  }
}

export function answerTo(interactionId: string): string {
  return `Yes, as the answer to ${interactionId}.`;
}

// The answers that engines received, in the order of their processes.
export function answersTold(traced: readonly TracedProcess[]): string[] {
  return traced.flatMap(({ input }) => input.match(/Yes, as the answer to [^.]+\./g) ?? []);
}

async function unlessCode<T>(codes: readonly string[], ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof ParleyError && codes.includes(error.code))) throw error;
    return null;
  }
}

// The effects of the approved commands, which Parley does not see.
export function readApproved({ site }: Pick<Hosts, 'site'>): string[] {
  try {
    return readFileSync(join(site.root, 'approved.txt'), 'utf8').split('\n').slice(0, -1);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

interface Observed {
  readonly seq: number;
  readonly attempt_number: number;
  readonly event: { readonly type: string };
  readonly data: { readonly interaction_id?: string };
}

// For an existing run: its events are complete, and each thing happened once.
export async function expectWhole(
  world: Persistence,
  hosts: Pick<Hosts, 'site' | 'traced'>,
  run: Tortured,
  status: string,
): Promise<void> {
  const { runId, kind } = run;
  const { events } = await world.somewhere(
    async (client) =>
      (await (await client.request('GET', `/v1/runs/${runId}/rasp/history?limit=5000`)).json()) as {
        events: Observed[];
      },
  );
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  const attemptsOf = (type: string) =>
    events.filter(({ event }) => event.type === type).map(({ attempt_number: attempt }) => attempt);
  for (const type of [
    'lifecycle.turn.started',
    'lifecycle.process.spawned',
    'lifecycle.turn.ended',
    'interaction.reply.accepted',
    'interaction.auto_decide.timeout',
  ]) {
    expect(new Set(attemptsOf(type)).size, `${type} of ${runId}`).toBe(attemptsOf(type).length);
  }
  const answers = events
    .filter(({ event }) => event.type === 'interaction.reply.accepted')
    .map(({ data }) => answerTo(data.interaction_id ?? ''));
  const isWell = status === 'succeeded';
  const traced = hosts.traced(runId);
  if (isWell) {
    if (kind === 'asks') expect(answersTold(traced)).toEqual(answers);
    expect([
      attemptsOf('interaction.reply.accepted').length,
      attemptsOf('interaction.auto_decide.timeout').length,
    ]).toEqual(kind === 'decides' ? [0, QUESTIONS] : [QUESTIONS, 0]);
    // A resident process runs several turns.
    if (kind !== 'approves') expect(traced.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
  }
  const done = readApproved(hosts).filter((line) => run.marks.includes(line));
  expect(done, `approved commands of ${runId}`).toEqual(isWell ? run.marks : run.marks.slice(0, done.length));
}

// For a deleted run: no row is left.
export async function expectGone(world: Persistence, hosts: Hosts, run: Tortured): Promise<void> {
  const { runId } = run;
  await expect(world.somewhere((client) => client.get(runId))).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
  const tables = await hosts.database.query<{ name: string }>(
    `SELECT table_name AS name
     FROM information_schema.columns
     WHERE table_schema = 'parley' AND column_name = 'run_id'`,
  );
  expect(tables.map(({ name }) => name)).toEqual(expect.arrayContaining(['runs', 'segments', 'interactions']));
  for (const { name } of tables)
    expect(await hosts.database.query(`SELECT FROM parley.${name} WHERE run_id = $1`, [runId]), name).toEqual([]);
}

// All of these can be verified, once files next to the store had time to be written.
export async function expectProved(world: Persistence, runs: readonly Tortured[]): Promise<void> {
  let left = runs;
  const unproved = async (): Promise<string[]> => {
    const findings = new Map<Tortured, string>();
    for (const run of left) {
      const { checks } = await world.somewhere((client) => client.verify(run.runId));
      const failed = checks.filter(({ ok }) => !ok).map(({ name, finding }) => `${name}: ${finding}`);
      if (failed.length > 0)
        findings.set(run, `${run.kind} ${run.runId}${run.canceled ? ' (canceled)' : ''}: ${failed.join('; ')}`);
    }
    left = [...findings.keys()];
    return [...findings.values()];
  };
  await expect.poll(unproved, { timeout: 20_000 + runs.length * 500, interval: 500 }).toEqual([]);
}
