// Silence of a child, with time moved by hand: only its own silence counts.
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { IdleWatch, type SilenceRules } from '../../src/process/idle-watch.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

// As long as the watch itself waits before it decides.
async function flushMicrotasks(): Promise<void> {
  for (let round = 0; round < 4; round += 1) await setImmediate();
}

function watch(changes: Partial<SilenceRules> = {}) {
  const timers = new SimulatedTimers();
  const idle = new IdleWatch(timers);
  const calls: string[] = [];
  idle.start({
    idleMs: 100,
    toolMs: 1000,
    noticeMs: null,
    isToolRunning: () => false,
    onLimit: (reason) => calls.push(reason),
    onNotice: () => calls.push('notice'),
    ...changes,
  });
  return { timers, idle, calls };
}

test('silence up to the limit is reported once', async () => {
  const { timers, calls } = watch();
  timers.advance(99);
  await flushMicrotasks();
  expect(calls).toEqual([]);
  timers.advance(1);
  await flushMicrotasks();
  expect(calls).toEqual(['idle_timeout']);
});

test('output that waited to be read when the timer fired is no silence', async () => {
  const { timers, idle, calls } = watch();
  timers.advance(100);
  // The timer fired before the pipe was read; the chunk is read in the same tick.
  idle.hold();
  idle.release();
  await flushMicrotasks();
  expect(calls).toEqual([]);
  timers.advance(100);
  await flushMicrotasks();
  expect(calls).toEqual(['idle_timeout']);
});

test('a stream that we hold back is not silent', async () => {
  const { timers, idle, calls } = watch();
  timers.advance(100);
  idle.hold();
  await flushMicrotasks();
  timers.advance(1000);
  await flushMicrotasks();
  expect(calls).toEqual([]);
  idle.release();
  timers.advance(100);
  await flushMicrotasks();
  expect(calls).toEqual(['idle_timeout']);
});

test('it is not quiet while a stream is held back, although nothing more is read', async () => {
  const idle = new IdleWatch(new SimulatedTimers());
  idle.hold();
  expect(await idle.isQuiet()).toBe(false);
  idle.release();
  expect(await idle.isQuiet()).toBe(true);
});

test('it is not quiet if a chunk is read in the second round of the event loop', async () => {
  const idle = new IdleWatch(new SimulatedTimers());
  const quiet = idle.isQuiet();
  await setImmediate();
  idle.hold();
  idle.release();
  expect(await quiet).toBe(false);
});

test('rules that were replaced or stopped meanwhile decide nothing', async () => {
  const { timers, idle, calls } = watch();
  timers.advance(100);
  idle.stop();
  await flushMicrotasks();
  expect(calls).toEqual([]);
});

test('while a tool call is running its own limit applies, and silence is reported before it', async () => {
  const { timers, calls } = watch({ isToolRunning: () => true, noticeMs: 500 });
  timers.advance(499);
  await flushMicrotasks();
  expect(calls).toEqual([]);
  timers.advance(1);
  await flushMicrotasks();
  timers.advance(500);
  await flushMicrotasks();
  expect(calls).toEqual(['notice', 'tool_timeout']);
});
