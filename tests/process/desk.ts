// Shared setup: a separate directory and mark, real children, and a check that none is left.
import { randomUUID } from 'node:crypto';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import {
  startChild,
  systemTimers,
  type Child,
  type ChildHandlers,
  type ChildSpec,
  type Timers,
} from '../../src/process/child.js';
import { listMarked, readRow, type ProcessEntry } from '../../src/process/process-table.js';
import type { StreamName } from '../../src/rasp/event.js';
import { breakDisk } from '../support/failing-disk.js';
import { afterEachTest } from '../support/hooks.js';

export { Gate } from '../support/gate.js';

export const GRACE_MS = 30_000;
export const TURN_MS = 600_000;
export const IDLE_MS = 60_000;

interface Desk {
  readonly directory: string;
  readonly mark: string;
  readonly bystanders: ChildProcess[];
}

// The desk of the current test, created by its first use.
let current: Desk | null = null;

function openDesk(): Desk {
  current ??= {
    directory: mkdtempSync(join(tmpdir(), 'parley-process-')),
    mark: `test-${randomUUID()}/1`,
    bystanders: [],
  };
  return current;
}

export const desk: Desk = {
  get directory() {
    return openDesk().directory;
  },
  get mark() {
    return openDesk().mark;
  },
  get bystanders() {
    return openDesk().bystanders;
  },
};

afterEachTest(async () => {
  if (current === null) return;
  for (const bystander of desk.bystanders) bystander.kill('SIGKILL');
  const left = marked();
  for (const { pid } of left) process.kill(pid, 'SIGKILL');
  await rm(desk.directory, { recursive: true, force: true });
  current = null;
  expect(left, 'the test left marked processes').toEqual([]);
});

export function marked(): ProcessEntry[] {
  return listMarked().filter(({ mark }) => mark === desk.mark);
}

export function specOf(argv: readonly string[], changes: Partial<ChildSpec> = {}): ChildSpec {
  return {
    argv,
    cwd: desk.directory,
    env: { PATH: process.env.PATH ?? '' },
    stdin: null,
    logs: { stdout: join(desk.directory, 'stdout.log'), stderr: join(desk.directory, 'stderr.log') },
    mark: desk.mark,
    turnTimeoutMs: TURN_MS,
    idleTimeoutMs: IDLE_MS,
    graceMs: GRACE_MS,
    ...changes,
  };
}

// The log can be created, but not written to.
export async function fillDisk(log: string = join(desk.directory, 'stdout.log')): Promise<void> {
  const disk = await breakDisk(log, { at: 2, times: Number.POSITIVE_INFINITY, how: 'ENOSPC' });
  onTestFinished(() => disk.restore());
}

export const node = (script: string, ...args: string[]) => [process.execPath, '-e', script, ...args];
export const shell = (script: string) => ['/bin/sh', '-c', script];
export const fixture = (name: string, ...args: string[]) => [
  process.execPath,
  fileURLToPath(new URL(`fixtures/${name}.mjs`, import.meta.url)),
  ...args,
];

// A running child, its output, and a way to wait for output.
export class Heard implements ChildHandlers {
  readonly text: Record<StreamName, string> = { stdout: '', stderr: '' };
  #waiting: { readonly words: string; readonly resolve: () => void }[] = [];

  onChunk(stream: StreamName, chunk: Buffer): void {
    this.text[stream] += chunk.toString('latin1');
    for (const waiting of this.#waiting) if (this.#said(waiting.words)) waiting.resolve();
  }

  says(words: string): Promise<void> {
    return this.#said(words)
      ? Promise.resolve()
      : new Promise((resolve) => void this.#waiting.push({ words, resolve }));
  }

  #said(words: string): boolean {
    return this.text.stdout.includes(words) || this.text.stderr.includes(words);
  }
}

export async function start(
  spec: ChildSpec,
  handlers: ChildHandlers = { onChunk: () => {} },
  timers: Timers = systemTimers,
): Promise<Child> {
  const result = await startChild(spec, handlers, timers);
  if (!result.started) throw new Error(result.message);
  return result.child;
}

export function readLog(stream: StreamName): Promise<Buffer> {
  return readFile(join(desk.directory, `${stream}.log`));
}

// A process of another user, with or without a mark.
export async function startBystander(
  env: Record<string, string> = {},
): Promise<ChildProcess & { readonly pid: number }> {
  const bystander = spawn('/bin/sh', ['-c', 'echo there; exec sleep 1000'], {
    detached: true,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  desk.bystanders.push(bystander);
  await once(bystander.stdout, 'data');
  return bystander as ChildProcess & { readonly pid: number };
}

// A zombie is not alive.
export function isAlive(pid: number): boolean {
  return readRow(pid) !== null;
}
