// The app-server of the real Codex in a user's environment, with the scripted model. Closes everything after each test.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach } from 'vitest';
import {
  start,
  type CodexAppServer,
  type ServerEvent,
  type StartOptions,
  type ThreadStartParams,
} from '../../src/app-server/index.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { descendantsOf } from '../../src/process/process-table.js';
import { meetPerson, type Person } from './real-person.js';

export interface Desk {
  readonly person: Person;
  readonly taskDir: string;
  open(instance?: string, rest?: Partial<StartOptions>): Promise<CodexAppServer>;
}

const endings: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end();
});

export async function openDesk(): Promise<Desk> {
  const person = await meetPerson('codex', (end) => endings.push(end));
  const taskDir = person.data;
  const options = {
    taskDir,
    cwd: person.cwd,
    codexBin: String(person.env['PARLEY_CODEX_BIN']),
    user: { home: person.home, env: person.env },
    env: { SCRIPTED_API_KEY: String(person.env['SCRIPTED_API_KEY']) },
  };
  return {
    person,
    taskDir,
    async open(instance = 'one', rest = {}) {
      const server = await start({ ...options, instance, ...rest });
      endings.push(() => server.close());
      return server;
    },
  };
}

export const paramsOf = (event: ServerEvent): JsonObject => ('params' in event ? (event.params as JsonObject) : {});
export const turnIn = (event: ServerEvent): JsonObject => paramsOf(event).turn as JsonObject;

// Waits for the next event of a thread with this method, or for the end of the server.
export async function next(
  server: CodexAppServer,
  threadId: string,
  method: string,
  from = server.recordedFrom,
): Promise<ServerEvent> {
  for await (const event of server.events({ from })) {
    if ('method' in event && event.method === method && paramsOf(event).threadId === threadId) return event;
  }
  throw new Error(`the server ended without ${method}`);
}

// All events so far of the given thread.
export function eventsOf(server: CodexAppServer, threadId: string): JsonObject[] {
  return readLines(server.recording.events).filter(
    (line) => (line.params as JsonObject | undefined)?.threadId === threadId,
  );
}

export function readLines(path: string): JsonObject[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as JsonObject);
}

export async function newThread(server: CodexAppServer, params: ThreadStartParams = {}): Promise<string> {
  const { thread } = await server.threads.start({ sandbox: 'danger-full-access', approvalPolicy: 'never', ...params });
  return thread.id;
}

// Runs one turn to its end and returns its last event.
export async function play(server: CodexAppServer, threadId: string, prompt: string): Promise<ServerEvent> {
  const { turn } = await server.turns.start(threadId, prompt);
  for await (const event of server.events({ from: server.recordedFrom })) {
    if ('method' in event && event.method === 'turn/completed' && turnIn(event).id === turn.id) return event;
  }
  throw new Error('the server ended before the turn did');
}

export const sessionOf = (desk: Desk, instance = 'one'): JsonObject =>
  JSON.parse(readFileSync(join(desk.taskDir, 'agents', instance, 'session.json'), 'utf8')) as JsonObject;

// The processes below the server that sleep, as the commands of these tests do.
export function commandsOf(server: CodexAppServer): number[] {
  return descendantsOf(server.pid)
    .map(({ pid }) => pid)
    .filter((pid) => commandLineOf(pid).startsWith('sleep\0'));
}

// Empty for a process that has exited.
function commandLineOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
