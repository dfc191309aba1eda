// The built worker process of the command line, `parley work`, started so that a test can kill it. Tests observe it
// through the store and /proc.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, expect } from 'vitest';
import { hasWriter } from '../../src/cli/writer-alive.js';
import type { Answer, Assignment, Job } from '../../src/cli/conversation/assignment.js';
import type { Json, JsonObject } from '../../src/kernel/json.js';
import type { CreateRunRequest } from '../../src/commands/create-request.js';
import { verifyRun } from '../../src/audit/verify-run.js';
import { waitForFiles } from '../../src/journal/wait-for-files.js';
import { systemTimers } from '../../src/process/timers.js';
import type { RaspEvent } from '../../src/rasp/event.js';
import { openForReading, type DataDir } from '../../src/store/sqlite/data-dir.js';
import type { RunRecord } from '../../src/store/store.js';
import type { RealEngine } from '../models/offline-config.js';
import { meetPerson, MODEL_NAMES, PERSON_SETTINGS, type Person } from './real-person.js';

const ENTRY = fileURLToPath(new URL('../../bin/parley.js', import.meta.url));
const LIMIT_MS = 120_000;
const LOOK_MS = 50;

const endings: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end();
});

export async function openSite(engine: RealEngine, settings: JsonObject = {}): Promise<Person> {
  const person = await meetPerson(engine, (end) => endings.push(end));
  writeFileSync(join(person.data, 'config.json'), JSON.stringify({ ...PERSON_SETTINGS, ...settings }));
  return person;
}

export interface Worker {
  readonly runId: string;
  readonly pid: number;
  // With SIGKILL, so it cannot clean up.
  kill(): Promise<void>;
}

// Stays until it is killed, even when no work is left.
export async function startWorker({ env, root, data }: Person, job: Job): Promise<Worker> {
  const child = spawn(process.execPath, [ENTRY, 'work'], {
    cwd: root,
    env,
    detached: true,
    stdio: ['pipe', 'ignore', 'inherit', 'ipc'],
  });
  const kill = () => killed(child);
  endings.push(kill);
  child.stdin?.end(JSON.stringify({ data, job, stay: true } satisfies Assignment));
  const [answer] = (await once(child, 'message')) as [Answer];
  if ('error' in answer) throw new Error(`${answer.error.code}: ${answer.error.message}`);
  return { runId: answer.run_id, pid: child.pid ?? 0, kill };
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
  expect(child.signalCode).toBe('SIGKILL');
}

export function createJob({ engine, cwd }: Person, prompt: string, rest: Partial<CreateRunRequest> = {}): Job {
  return {
    type: 'create',
    request: {
      engine,
      prompt,
      cwd,
      model: MODEL_NAMES[engine],
      permission: 'full',
      execution_mode: 'interactive',
      ...rest,
    },
  };
}

export async function replyJob(person: Person, runId: string, response: Json): Promise<Job> {
  const pending = await look(person, ({ store }) => store.loadPendingInteraction(runId));
  return { type: 'reply', run_id: runId, reply: { interaction_id: pending?.interaction_id ?? '', response } };
}

// Reads from another process, whether or not the worker runs.
export async function look<T>(person: Person, at: (data: DataDir) => Promise<T>): Promise<T> {
  const data = await openForReading(person.data);
  if (!data) throw new Error('nothing is stored yet');
  try {
    return await at(data);
  } finally {
    await data.close();
  }
}

// The run once it has no turn in progress; checks that all its stored data is consistent.
export async function settledRun(person: Person, runId: string): Promise<RunRecord> {
  const run = await until(async () => {
    const run = await look(person, ({ store }) => store.loadRun(runId));
    return run && run.status !== 'queued' && run.status !== 'running' ? run : undefined;
  }, 'the end of a turn');
  const checks = await look(person, ({ store, path }) =>
    verifyRun(store, path, run, { waitForFiles: waitForFiles(systemTimers, async () => hasWriter(path)) }),
  );
  expect(checks.filter(({ ok }) => !ok)).toEqual([]);
  return run;
}

export async function eventsOf(person: Person, runId: string): Promise<RaspEvent[]> {
  const lines = await look(person, ({ store }) => store.readJournal(runId, 'rasp', { limit: 1_000_000 }));
  return lines.map((line) => JSON.parse(line) as RaspEvent);
}

// Command lines of all processes of a run: those with its mark in the environment, or with a path of this user (the
// question tool, which some engines start without their environment).
export function processesOf({ root }: Person, runId: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      const command = read(`/proc/${pid}/cmdline`);
      return command.includes(root) || `\0${read(`/proc/${pid}/environ`)}`.includes(`\0PARLEY_TURN=${runId}/`)
        ? [command.replaceAll('\0', ' ')]
        : [];
    });
}

// Empty if it cannot be read: exited, a zombie, or of another user.
function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

export async function until<T>(find: () => T | undefined | Promise<T | undefined>, what: string): Promise<T> {
  for (const limit = Date.now() + LIMIT_MS; Date.now() < limit; await pause(LOOK_MS)) {
    const value = await find();
    if (value !== undefined) return value;
  }
  throw new Error(`waited in vain for ${what}`);
}
