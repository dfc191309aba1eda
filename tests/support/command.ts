// The built command, called as a person or a script would: a child process with its own data directory and home, and
// stand-in engines. Tests wait for output or stored data. Leftovers of a test are ended after it.
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import { isAlive } from '../../src/cli/writer-alive.js';
import { listMarked, readRow } from '../../src/process/process-table.js';
import { openForReading, readWriter, type DataDir } from '../../src/store/sqlite/data-dir.js';
import type { RunRecord } from '../../src/store/store.js';
import { closedValidator } from './closed-validator.js';
import { afterEachTest } from './hooks.js';
import { createRoot } from './orchestrated.js';
import { openPty, type Pty, type PtyOptions } from './pty.js';

const BUILT = new URL('../../bin/parley.js', import.meta.url).pathname;
// The same program before it is packed: a test can replace its modules.
export const UNPACKED = new URL('../../dist/main.js', import.meta.url).pathname;
const STAND_INS = new URL('../stand-ins/bin/', import.meta.url).pathname;
const LIMIT_MS = 30_000;
const LOOK_MS = 20;

export interface Site {
  readonly root: string;
  readonly data: string;
  // The working folder of the commands.
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface Ended {
  // 128 and the signal if one ended it.
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<Ended>;
  waitFor(text: string | RegExp): Promise<void>;
}

export interface CallOptions {
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  // A command that starts it, for instance with limits.
  readonly through?: readonly string[];
  // Default: the built command.
  readonly program?: string;
}

const sites: Site[] = [];
const children = new Set<ChildProcessWithoutNullStreams>();

afterEachTest(async () => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
  for (const site of sites.splice(0)) await endAll(site);
});

export function createSite(): Site {
  const root = createRoot();
  const [data, cwd, home] = ['data', 'work', 'home'].map((name) => join(root, name)) as [string, string, string];
  mkdirSync(cwd);
  mkdirSync(home);
  const bins = Object.fromEntries(
    ['codex', 'gemini', 'iflow', 'opencode'].map((name) => [`PARLEY_${name.toUpperCase()}_BIN`, join(STAND_INS, name)]),
  );
  const resident = { PARLEY_CODEX_APP_SERVER_BIN: join(STAND_INS, 'codex-app-server-stand-in') };
  const site = {
    root,
    data,
    cwd,
    env: { PATH: process.env['PATH'] ?? '', HOME: home, LANG: 'C.UTF-8', PARLEY_DATA: data, ...bins, ...resident },
  };
  sites.push(site);
  return site;
}

export function start(
  site: Site,
  args: readonly string[],
  { stdin = '', env = {}, cwd = site.cwd, through = [], program = BUILT }: CallOptions = {},
): Running {
  const [first = '', ...rest] = [...through, process.execPath, program, ...args];
  const child = spawn(first, rest, { cwd, env: { ...site.env, ...env } });
  children.add(child);
  const output = { stdout: '', stderr: '' };
  const watchers = new Set<() => void>();
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      output[stream] += text;
      for (const look of watchers) look();
    });
  }
  // A command that ends before it has read all its input does not fail the test.
  child.stdin.on('error', () => {});
  child.stdin.end(stdin);
  const ended = new Promise<Ended>((resolve) =>
    child.on('close', (code, signal) => {
      children.delete(child);
      resolve({ code: code ?? 128 + (signal === 'SIGINT' ? 2 : signal === 'SIGKILL' ? 9 : 15), ...output });
    }),
  );
  const waitFor = (text: string | RegExp): Promise<void> =>
    new Promise((resolve, reject) => {
      const fail = (why: string) =>
        reject(
          new Error(
            `parley ${args.join(' ')}: ${why} before ${String(text)} came. The ` +
              `output:\n${output.stdout}\n${output.stderr}`,
          ),
        );
      const limit = setTimeout(() => fail('the time was over'), LIMIT_MS);
      const look = (): void => {
        if (!matches(output.stdout, text)) return;
        clearTimeout(limit);
        watchers.delete(look);
        resolve();
      };
      watchers.add(look);
      void ended.then(() => {
        clearTimeout(limit);
        if (!matches(output.stdout, text)) fail('it ended');
      });
      look();
    });
  return { child, ended, waitFor };
}

function matches(output: string, text: string | RegExp): boolean {
  return typeof text === 'string' ? output.includes(text) : text.test(output);
}

export function parley(site: Site, args: readonly string[], options?: CallOptions): Promise<Ended> {
  return start(site, args, options).ended;
}

// Without colours, unless requested: they would separate the words that a test waits for.
export function onTerminal(site: Site, args: readonly string[], { env = {}, ...options }: PtyOptions = {}): Pty {
  return openPty([process.execPath, BUILT, ...args], {
    cwd: site.cwd,
    ...options,
    env: { ...site.env, NO_COLOR: '1', ...env },
  });
}

// Starts a run and returns while its worker continues.
export async function startDetached(site: Site, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await parley(site, ['run', ...args, '--detach']);
  expect(code, stderr).toBe(0);
  return stdout.trim();
}

export async function withData<T>(site: Site, look: (data: DataDir) => Promise<T>): Promise<T> {
  const data = await openForReading(site.data);
  if (!data) throw new Error(`nothing is stored in ${site.data}`);
  try {
    return await look(data);
  } finally {
    await data.close();
  }
}

export function listRuns(site: Site): Promise<RunRecord[]> {
  return withData(site, ({ store }) => store.listRuns({ limit: 1000 }));
}

// The newest run, or the given one, once it is in this status.
export async function untilRun(site: Site, status: RunRecord['status'], runId?: string): Promise<RunRecord> {
  const seen = (run: RunRecord): boolean => run.status === status && (runId === undefined || run.run_id === runId);
  return until(
    async () =>
      existsSync(join(site.data, 'parley.db')) ? (await listRuns(site).catch(() => [])).find(seen) : undefined,
    `a run that is ${status}`,
  );
}

// The worker has released the directory, so others may write.
export async function untilFree(site: Site): Promise<void> {
  await until(async () => (hasWorker(site) ? undefined : true), 'a directory that nobody writes to');
}

export async function untilEngine(site: Site): Promise<number> {
  return until(async () => (await enginesOf(site))[0]?.pid, 'a process of the engine');
}

// A worker owns the directory, whatever it has done so far.
export async function untilBegun(site: Site): Promise<void> {
  await until(async () => readWriter(site.data) ?? undefined, 'a worker');
}

// The newest run has printed this text.
export async function untilSaid(site: Site, text: string): Promise<void> {
  await until(async () => {
    const [newest] = await listRuns(site);
    const lines = newest
      ? await withData(site, ({ store }) => store.readJournal(newest.run_id, 'fcmp', { limit: 1000 }))
      : [];
    return lines.some((line) => line.includes('message.final') && line.includes(text)) ? true : undefined;
  }, text);
}

export async function untilGone(pid: number): Promise<void> {
  await until(async () => (readRow(pid) === null ? true : undefined), `the end of process ${pid}`);
}

export function workerOf(site: Site): number {
  const writer = readWriter(site.data);
  expect(writer, 'a worker').not.toBeNull();
  return writer?.pid ?? 0;
}

async function until<T>(look: () => Promise<T | undefined>, what: string): Promise<T> {
  for (const limit = Date.now() + LIMIT_MS; Date.now() < limit; await pause(LOOK_MS)) {
    const value = await look();
    if (value !== undefined) return value;
  }
  throw new Error(`waited in vain for ${what}`);
}

export function hasWorker(site: Site): boolean {
  const writer = readWriter(site.data);
  return writer !== null && isAlive(writer);
}

// Processes that belong to a run of this data directory.
export async function enginesOf(site: Site): Promise<{ pid: number }[]> {
  const ids = existsSync(join(site.data, 'parley.db'))
    ? (await listRuns(site).catch(() => [])).map((run) => run.run_id)
    : [];
  return listMarked().filter(({ mark }) => ids.some((id) => mark?.startsWith(`${id}/`)));
}

async function endAll(site: Site): Promise<void> {
  const writer = readWriter(site.data);
  // A virtual machine has number 1.
  const left = [...(writer && writer.pid > 1 && isAlive(writer) ? [writer] : []), ...(await enginesOf(site))];
  for (const { pid } of left) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      // It has just exited.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

const explainLine = closedValidator('cli.schema.json');
const explainEvent = {
  'fcmp/1.0': closedValidator('fcmp.schema.json'),
  'rasp/1.0': closedValidator('rasp.schema.json'),
};

// Every line is one object that fits its schema, without undeclared members.
export function expectLines(text: string): Record<string, unknown>[] {
  expect(text).toMatch(/^(?:[^\n]+\n)*$/);
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const value = JSON.parse(line) as Record<string, unknown>;
      const explain = explainEvent[value['protocol_version'] as keyof typeof explainEvent] ?? explainLine;
      expect(explain(value), line).toBeNull();
      return value;
    });
}
