// The effect of signals on a stand-in and on the commands it started. Linux: the state of a process is read from /proc.
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, watch } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import {
  commandOf,
  createPlace,
  finish,
  judge,
  STAND_INS,
  start,
  type Place,
  type StandIn,
} from '../support/stand-in.js';

// Resolves when the output has this text.
function printed({ stdout }: ChildProcessWithoutNullStreams, text: string): Promise<void> {
  return new Promise((resolve) => {
    let seen = '';
    stdout.on('data', (chunk: Buffer) => {
      seen += chunk.toString();
      if (seen.includes(text)) resolve();
    });
  });
}

// Resolves with the content of a file once it exists, complete lines only.
function written(directory: string, name: string): Promise<string> {
  const file = join(directory, name);
  return new Promise((resolve) => {
    const look = () => {
      const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
      if (!text.endsWith('\n')) return;
      watcher.close();
      resolve(text.trim());
    };
    const watcher = watch(directory, look);
    look();
  });
}

// Field 3 is the state, 5 the process group, 6 the session; the name before them may have blanks.
function statOf(pid: number): { state: string; group: number; session: number } | null {
  if (!existsSync(`/proc/${pid}/stat`)) return null;
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return { state: fields[0] ?? '', group: Number(fields[2]), session: Number(fields[3]) };
}

function isAlive(pid: number): boolean {
  const stat = statOf(pid);
  return stat !== null && stat.state !== 'Z';
}

// Groups that a test left on purpose, or that a failed one did not clean up.
const groups: number[] = [];

afterAll(() => {
  for (const group of groups) if (isAlive(group)) process.kill(-group, 'SIGKILL');
});

async function startWithTool(
  engine: StandIn,
  place: Place,
): Promise<{ child: ChildProcessWithoutNullStreams; tool: number }> {
  const child = start(commandOf(engine, place, 'run [[tool echo $$ > pid; exec sleep 300]]'), place);
  const tool = Number(await written(place.cwd, 'pid'));
  groups.push(tool);
  return { child, tool };
}

// Polls, because nothing reports the end of a process that is not our child.
async function gone(pid: number): Promise<void> {
  while (isAlive(pid)) await setTimeout(2);
}

describe.concurrent.each(STAND_INS)('%s', (engine) => {
  test('[[hang]] runs until it is signaled, and exits as the real one does', async () => {
    const ends = {
      codex: { code: null, signal: 'SIGTERM' },
      gemini: { code: 0, signal: null },
      iflow: { code: null, signal: 'SIGTERM' },
      opencode: { code: null, signal: 'SIGTERM' },
    };
    const child = start(commandOf(engine, createPlace(), 'go [[answer half]][[hang]]'), createPlace());
    const ended = finish(child);
    await printed(child, 'half');
    expect(child.exitCode).toBeNull();
    child.kill('SIGTERM');
    const turn = judge(engine, await ended);
    expect(turn).toMatchObject(ends[engine]);
    expect(turn.evidence.success).toBe(false);
    expect(turn.error).toMatchObject({ code: engine === 'gemini' ? 'COMPLETION_UNKNOWN' : 'ENGINE_EXITED' });
  });

  test('a command runs in a session and process group of its own', async () => {
    const { child, tool } = await startWithTool(engine, createPlace());
    expect(statOf(tool)).toMatchObject({ group: tool, session: tool });
    const ended = finish(child);
    process.kill(-tool, 'SIGKILL');
    expect((await ended).code).toBe(0);
  });

  test.each(['SIGTERM', 'SIGKILL'] as const)(
    `a running command ${engine === 'codex' ? 'dies with it' : 'survives it'} on %s`,
    async (signal) => {
      const { child, tool } = await startWithTool(engine, createPlace());
      const ended = finish(child);
      child.kill(signal);
      await ended;
      if (engine === 'codex') await gone(tool);
      expect(isAlive(tool)).toBe(engine !== 'codex');
    },
  );

  test('background processes of a command are not waited for', async () => {
    const place = createPlace();
    const child = start(commandOf(engine, place, 'run [[tool sleep 300 & echo $! > pid]][[done 1]]'), place);
    const turn = judge(engine, await finish(child));
    const left = Number(readFileSync(join(place.cwd, 'pid'), 'utf8'));
    expect(isAlive(left)).toBe(true);
    process.kill(left, 'SIGKILL');
    expect(turn.verdict).toMatchObject({ event: 'turn.succeeded' });
  });

  test('[[orphan]] leaves a shell behind that holds stdout open', async () => {
    const place = createPlace();
    const child = start(commandOf(engine, place, 'go [[orphan]][[done 1]]'), place);
    const ended = finish(child);
    let closed = false;
    void ended.then(() => (closed = true));
    const [text] = await Promise.all([firstMatch(child, /I left process (\d+) running/), once(child, 'exit')]);
    const orphan = Number(text);
    groups.push(orphan);
    expect(child.exitCode).toBe(0);
    expect(closed).toBe(false);
    expect(statOf(orphan)).toMatchObject({ group: orphan, session: orphan });
    expect(readFileSync(`/proc/${orphan}/environ`, 'utf8')).toContain('PARLEY_TURN=run_1/1');
    process.kill(-orphan, 'SIGKILL');
    expect(judge(engine, await ended).verdict).toMatchObject({ event: 'turn.succeeded', reasonCode: 'DONE_MARKER' });
  });
});

test.concurrent('codex ends with code 1 on SIGINT, and its stream just ends', async () => {
  const child = start(commandOf('codex', createPlace(), 'go [[answer half]][[hang]]'), createPlace());
  const ended = finish(child);
  await printed(child, 'half');
  child.kill('SIGINT');
  const turn = judge('codex', await ended);
  expect(turn).toMatchObject({ code: 1, signal: null, error: { code: 'ENGINE_EXITED' } });
});

test.concurrent('a slow reader slows a stand-in down instead of filling its memory', async () => {
  const total = 100_000_000;
  const place = createPlace();
  const child = start(commandOf('codex', place, 'go [[events 1000 100000]]'), place);
  const exited = once(child, 'exit');
  child.stderr.resume();
  let bytes = 0;
  let peak = 0;
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    // Near the end, while it still runs: everything it ever printed.
    if (bytes > 0.5 * total && peak === 0)
      peak = Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) * 1024;
  }
  await exited;
  expect(bytes).toBeGreaterThan(0.7 * total);
  expect(peak).toBeGreaterThan(0);
  expect(peak).toBeLessThan(110_000_000);
});

function firstMatch({ stdout }: ChildProcessWithoutNullStreams, pattern: RegExp): Promise<string> {
  return new Promise((resolve) => {
    let seen = '';
    stdout.on('data', (chunk: Buffer) => {
      seen += chunk.toString();
      const pid = pattern.exec(seen)?.[1];
      if (pid) resolve(pid);
    });
  });
}
