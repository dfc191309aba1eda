import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemTimers } from '../../src/process/timers.js';
import { SimulatedTimers } from '../support/simulated-timers.js';
import { desk, Gate, GRACE_MS, Heard, IDLE_MS, isAlive, node, shell, specOf, start, TURN_MS } from './desk.js';

const talker = node(
  'let count = 0; process.on("SIGUSR2", () => (++count % 2 ? console.error : console.log)("more " + count)); ' +
    'console.log("ready"); setInterval(() => {}, 1000)',
);

test('a turn that takes too long is ended, once', async () => {
  const timers = new SimulatedTimers();
  const child = await start(specOf(shell('exec sleep 1000'), { idleTimeoutMs: 2 * TURN_MS }), undefined, timers);
  timers.advance(TURN_MS - 1);
  expect(timers.lengths()).not.toContain(GRACE_MS);
  timers.advance(1);
  await timers.armed(GRACE_MS);
  expect(timers.lengths()).toEqual([GRACE_MS]);
  expect(await child.done).toMatchObject({ exit: { signal: 'SIGTERM' }, endedByUs: 'turn_timeout' });
  timers.advance(10 * TURN_MS);
  expect(timers.lengths()).toEqual([]);
});

test('a child that prints nothing is ended as idle', async () => {
  const timers = new SimulatedTimers();
  const child = await start(specOf(shell('exec sleep 1000')), undefined, timers);
  timers.advance(IDLE_MS);
  expect(await child.done).toMatchObject({ exit: { signal: 'SIGTERM' }, endedByUs: 'idle_timeout' });
  expect(timers.lengths()).toEqual([]);
});

test('a child that closed both its streams is idle too', async () => {
  const timers = new SimulatedTimers();
  const child = await start(specOf(shell('exec 1>&- 2>&-; exec sleep 1000')), undefined, timers);
  timers.advance(IDLE_MS);
  expect((await child.done).endedByUs).toBe('idle_timeout');
});

test('every chunk, on either stream, begins the idle time anew', async () => {
  const timers = new SimulatedTimers();
  const heard = new Heard();
  const child = await start(specOf(talker), heard, timers);
  await heard.says('ready');
  for (let count = 1; count <= 3; count += 1) {
    await timers.armed(IDLE_MS);
    timers.advance(IDLE_MS - 1);
    process.kill(child.pid, 'SIGUSR2');
    await heard.says(`more ${count}\n`);
  }
  await timers.armed(IDLE_MS);
  timers.advance(IDLE_MS);
  expect((await child.done).endedByUs).toBe('idle_timeout');
  expect(heard.text).toEqual({ stdout: 'ready\nmore 2\n', stderr: 'more 1\nmore 3\n' });
});

test('the time in which a handler holds back is not the idleness of the child', async () => {
  const timers = new SimulatedTimers();
  const heard = new Heard();
  const gate = new Gate();
  const onChunk = (stream: 'stdout' | 'stderr', chunk: Buffer) => {
    heard.onChunk(stream, chunk);
    return gate.opened;
  };
  const child = await start(specOf(talker), { onChunk }, timers);
  await heard.says('ready');
  timers.advance(5 * IDLE_MS);
  expect(timers.lengths()).toEqual([TURN_MS]);
  expect(isAlive(child.pid)).toBe(true);
  gate.open();
  await timers.armed(IDLE_MS);
  timers.advance(IDLE_MS);
  expect((await child.done).endedByUs).toBe('idle_timeout');
});

test('an idle timer that fires late, with output waiting to be read, does not end the child', async () => {
  const timers = new SimulatedTimers();
  const heard = new Heard();
  const child = await start(specOf(shell('echo ready; : > said; exec sleep 1000')), heard, timers);
  // As after long synchronous work of ours: the output came meanwhile, and the timer fires first.
  while (!existsSync(join(desk.directory, 'said')));
  timers.advance(IDLE_MS);
  await heard.says('ready');
  await timers.armed(IDLE_MS);
  child.end('canceled');
  expect((await child.done).endedByUs).toBe('canceled');
});

test('deadlines end with the exit, even while output is still being handled', async () => {
  const timers = new SimulatedTimers();
  const gate = new Gate();
  const child = await start(specOf(shell('echo bye')), { onChunk: () => gate.opened }, timers);
  while (timers.lengths().includes(TURN_MS)) await new Promise(setImmediate);
  timers.advance(10 * TURN_MS);
  gate.open();
  expect(await child.done).toMatchObject({ exit: { code: 0 }, endedByUs: null });
});

test('the system timer takes a time beyond what setTimeout can hold as very long, not as none', async () => {
  const fired: string[] = [];
  const cancel = systemTimers.set(2 ** 40, () => fired.push('long'));
  await new Promise<void>((resolve) => void systemTimers.set(1, resolve));
  cancel();
  expect(fired).toEqual([]);
});

test('while a tool call is running, its own limit applies, and the idle limit again when it has ended', async () => {
  const timers = new SimulatedTimers();
  const heard = new Heard();
  let isRunning = true;
  const handlers = {
    onChunk: (stream: 'stdout' | 'stderr', chunk: Buffer) => heard.onChunk(stream, chunk),
    isToolRunning: () => isRunning,
  };
  const child = await start(specOf(talker, { toolTimeoutMs: 3 * IDLE_MS, turnTimeoutMs: null }), handlers, timers);
  await heard.says('ready');
  await timers.armed(3 * IDLE_MS);
  timers.advance(2 * IDLE_MS);
  isRunning = false;
  process.kill(child.pid, 'SIGUSR2');
  await heard.says('more 1\n');
  await timers.armed(IDLE_MS);
  expect(timers.lengths()).toEqual([IDLE_MS]);
  timers.advance(IDLE_MS);
  expect((await child.done).endedByUs).toBe('idle_timeout');
});

test('a tool call without output is ended by its limit', async () => {
  const timers = new SimulatedTimers();
  const child = await start(
    specOf(shell('exec sleep 1000'), { toolTimeoutMs: 3 * IDLE_MS }),
    { onChunk: () => {}, isToolRunning: () => true },
    timers,
  );
  timers.advance(3 * IDLE_MS);
  expect((await child.done).endedByUs).toBe('tool_timeout');
});

test('silence is reported once until the next output', async () => {
  const timers = new SimulatedTimers();
  const heard = new Heard();
  const notice = new Gate();
  let reported = 0;
  const onSilence = (): void => {
    reported += 1;
    notice.open();
  };
  const child = await start(
    specOf(talker, { silenceNoticeMs: IDLE_MS / 2 }),
    { onChunk: (stream, chunk) => heard.onChunk(stream, chunk), onSilence },
    timers,
  );
  await heard.says('ready');
  await timers.armed(IDLE_MS / 2);
  timers.advance(IDLE_MS / 2);
  await notice.opened;
  expect(timers.lengths()).toEqual([IDLE_MS, TURN_MS]);
  process.kill(child.pid, 'SIGUSR2');
  await heard.says('more 1\n');
  await timers.armed(IDLE_MS / 2);
  expect(reported).toBe(1);
  child.end('canceled');
  await child.done;
});
