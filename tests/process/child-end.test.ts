import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { LeftBehindError } from '../../src/process/left-behind-error.js';
import { DRAIN_LOOK_MS } from '../../src/process/drain.js';
import type { StreamName } from '../../src/rasp/event.js';
import { SimulatedTimers } from '../support/simulated-timers.js';
import {
  desk,
  fillDisk,
  fixture,
  Gate,
  GRACE_MS,
  Heard,
  isAlive,
  marked,
  node,
  readLog,
  shell,
  specOf,
  start,
  startBystander,
} from './desk.js';

const pidsIn = (text: string) => [...text.matchAll(/^\d:(\d+)$/gm)].map((match) => Number(match[1]));

test('a child can be ended before it has printed anything', async () => {
  const child = await start(specOf(node('setInterval(() => {}, 1000)')));
  child.end('canceled');
  expect(await child.done).toMatchObject({
    exit: { code: null, signal: 'SIGTERM' },
    endedByUs: 'canceled',
    streams: { stdout: { bytes: 0 } },
  });
});

test('the first reason counts, however often a child is ended', async () => {
  const child = await start(specOf(shell('exec sleep 1000')));
  child.end('shutdown');
  child.end('canceled');
  child.end('shutdown');
  expect((await child.done).endedByUs).toBe('shutdown');
});

test('ending a child that has exited changes nothing', async () => {
  const child = await start(specOf(shell('exit 4')));
  const end = await child.done;
  child.end('canceled');
  expect(await child.done).toBe(end);
  expect(end).toMatchObject({ exit: { code: 4, signal: null }, endedByUs: null });
});

test('ending a child whose output is still being handled after its exit changes nothing', async () => {
  const gate = new Gate();
  const child = await start(specOf(shell('echo bye')), { onChunk: () => gate.opened });
  // Not only dead: its exit was processed.
  while (existsSync(`/proc/${child.pid}`)) await new Promise(setImmediate);
  child.end('canceled');
  gate.open();
  expect(await child.done).toMatchObject({ exit: { code: 0, signal: null }, endedByUs: null });
});

test('a child that cleans up after SIGTERM keeps its last words and its own exit code', async () => {
  const heard = new Heard();
  const child = await start(
    specOf(
      node(
        'process.on("SIGTERM", () => { console.log("saved"); process.exit(9) }); console.log("ready"); ' +
          'setInterval(() => {}, 1000)',
      ),
    ),
    heard,
  );
  await heard.says('ready');
  child.end('canceled');
  expect(await child.done).toMatchObject({ exit: { code: 9, signal: null }, endedByUs: 'canceled' });
  expect(heard.text.stdout).toBe('ready\nsaved\n');
});

test('a child that works in another session gets no grace', async () => {
  const timers = new SimulatedTimers();
  const heard = new Heard();
  const child = await start(specOf(fixture('deaf')), heard, timers);
  await heard.says('ready');
  child.end('other_session');
  await heard.says('heard SIGTERM');
  timers.advance(1);
  expect(await child.done).toMatchObject({ exit: { code: null, signal: 'SIGKILL' }, endedByUs: 'other_session' });
});

test('a child that ignores SIGTERM is killed after the grace, not before', async () => {
  const timers = new SimulatedTimers();
  const heard = new Heard();
  const child = await start(specOf(fixture('deaf')), heard, timers);
  await heard.says('ready');
  child.end('canceled');
  await heard.says('heard SIGTERM');
  timers.advance(GRACE_MS - 1);
  expect(isAlive(child.pid)).toBe(true);
  timers.advance(1);
  expect(await child.done).toMatchObject({ exit: { code: null, signal: 'SIGKILL' }, endedByUs: 'canceled' });
  expect(heard.text.stdout).toBe('ready\nheard SIGTERM\n');
  expect(timers.lengths()).toEqual([]);
});

test('descendants in sessions of their own go with the child', async () => {
  const heard = new Heard();
  const child = await start(specOf(fixture('family', 'stay')), heard);
  await heard.says('family complete');
  const pids = pidsIn(heard.text.stdout);
  expect(pids).toHaveLength(3);
  expect(
    marked()
      .map(({ pid }) => pid)
      .toSorted(),
  ).toEqual(pids.toSorted());
  child.end('canceled');
  expect((await child.done).endedByUs).toBe('canceled');
  expect(pids.filter(isAlive)).toEqual([]);
});

test('orphans of a child are ended after its exit; its verdict and output stay', async () => {
  const heard = new Heard();
  const child = await start(specOf(fixture('family', 'leave')), heard);
  expect(await child.done).toMatchObject({ exit: { code: 0, signal: null }, endedByUs: null });
  expect(heard.text.stdout).toContain('family complete\n');
  expect(pidsIn(heard.text.stdout).filter(isAlive)).toEqual([]);
});

test('orphans that do not hold the output are ended as well', async () => {
  const heard = new Heard();
  const child = await start(specOf(shell('setsid sleep 1000 >/dev/null 2>&1 & echo $!')), heard);
  await child.done;
  expect(isAlive(Number(heard.text.stdout))).toBe(false);
});

test('an orphan that ignores SIGTERM is killed after the grace', async () => {
  const timers = new SimulatedTimers();
  const heard = new Heard();
  const child = await start(
    specOf(shell(`setsid "${process.execPath}" "${fixture('deaf')[1]}" & exit 2`)),
    heard,
    timers,
  );
  await timers.armed(GRACE_MS);
  timers.advance(GRACE_MS);
  expect(await child.done).toMatchObject({ exit: { code: 2, signal: null }, endedByUs: null });
});

test('descendants that cleared their environment are found by their parents, orphans by their session', async () => {
  const heard = new Heard();
  const child = await start(
    specOf(shell('env -i setsid sleep 1000 & echo 1:$!; (env -i sleep 1001 & echo 2:$!); echo ready; wait')),
    heard,
  );
  await heard.says('ready');
  const pids = pidsIn(heard.text.stdout);
  expect(pids).toHaveLength(2);
  child.end('canceled');
  await child.done;
  expect(pids.filter(isAlive)).toEqual([]);

  const again = new Heard();
  const logs = { stdout: join(desk.directory, 'again.out'), stderr: join(desk.directory, 'again.err') };
  await (
    await start(specOf(shell('env -i sleep 1000 & echo 1:$!'), { logs }), again)
  ).done;
  expect(pidsIn(again.text.stdout).filter(isAlive)).toEqual([]);
});

test('processes started by a dying descendant are found in the next round', async () => {
  const heard = new Heard();
  const script = `trap 'setsid sleep 1000 & echo 1:$!; exit' TERM; echo ready; while :; do sleep 0.05; done`;
  const timers = new SimulatedTimers();
  const child = await start(specOf(shell(script)), heard, timers);
  await heard.says('ready');
  child.end('canceled');
  await heard.says('1:');
  // A signal between its fork and its exec may be lost.
  timers.advance(GRACE_MS);
  await child.done;
  const pids = pidsIn(heard.text.stdout);
  expect(pids).toHaveLength(1);
  expect(pids.filter(isAlive)).toEqual([]);
});

test('somebody else is never touched: not without a mark, not with another mark', async () => {
  const plain = await startBystander();
  const other = await startBystander({ PARLEY_TURN: `${desk.mark}0` });
  const child = await start(specOf(shell('exec sleep 1000')));
  child.end('canceled');
  await child.done;
  expect([plain, other].map(({ pid }) => isAlive(pid))).toEqual([true, true]);
});

test('output held open by a process that cannot be found is cut off with an error that keeps the facts', async () => {
  const timers = new SimulatedTimers();
  const heard = new Heard();
  // No mark, its own session, and its parent exited before any check.
  const child = await start(
    specOf(
      shell(
        `mkfifo there; (env -i setsid sh -c 'echo 1:$$; echo > there; exec sleep 1000' &); read line < there; exit 1`,
      ),
    ),
    heard,
    timers,
  );
  await timers.armed(DRAIN_LOOK_MS);
  await heard.says('1:');
  timers.advance(DRAIN_LOOK_MS);
  const error = await child.done.catch((error: unknown) => error);
  for (const pid of pidsIn(heard.text.stdout)) process.kill(pid, 'SIGKILL');
  expect(error).toBeInstanceOf(LeftBehindError);
  expect(error).toMatchObject({
    pids: [],
    end: { exit: { code: 1, signal: null }, endedByUs: null },
    message: expect.stringContaining('still holds the output'),
  });
});

test('when a handler throws, the child is ended, `done` rejects with it, the rest is logged, not handled', async () => {
  const calls: StreamName[] = [];
  const onChunk = (stream: StreamName) => {
    calls.push(stream);
    throw new Error('the store is gone');
  };
  const script =
    'process.on("SIGTERM", () => { console.error("last words"); process.exit(0) }); console.log("first"); ' +
    'setInterval(() => {}, 1000)';
  const child = await start(specOf(node(script)), { onChunk });
  await expect(child.done).rejects.toThrow('the store is gone');
  expect(calls).toEqual(['stdout']);
  expect((await readLog('stderr')).toString()).toBe('last words\n');
});

test('when a handler rejects, the whole process tree has exited before `done` rejects', async () => {
  const heard = new Heard();
  const onChunk = async (stream: StreamName, chunk: Buffer) => {
    heard.onChunk(stream, chunk);
    if (heard.text.stdout.includes('family complete')) throw new Error('refused');
  };
  const child = await start(specOf(fixture('family', 'stay')), { onChunk });
  await expect(child.done).rejects.toThrow('refused');
  expect(pidsIn(heard.text.stdout).filter(isAlive)).toEqual([]);
  expect(marked()).toEqual([]);
});

test('a full disk ends the child, no unlogged byte is handled, and `done` rejects with the system error', async () => {
  const calls: StreamName[] = [];
  await fillDisk();
  const child = await start(specOf(fixture('family', 'stay')), { onChunk: (stream) => void calls.push(stream) });
  await expect(child.done).rejects.toMatchObject({ code: 'ENOSPC' });
  expect(calls).toEqual([]);
  expect(marked()).toEqual([]);
});

test('a flood onto a full disk does not block the child that is to be ended', async () => {
  await fillDisk();
  const child = await start(specOf(shell('exec yes')));
  await expect(child.done).rejects.toMatchObject({ code: 'ENOSPC' });
});
