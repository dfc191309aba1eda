import { expect, test } from 'vitest';
import { endTree, KILL_PATIENCE_MS } from '../../src/process/end-tree.js';
import { entryOf, readRow, type ProcessEntry } from '../../src/process/process-table.js';
import type { Look } from '../../src/process/process-tree.js';
import { SimulatedTimers } from '../support/simulated-timers.js';
import { desk, GRACE_MS, isAlive, startBystander } from './desk.js';

function entry(pid: number): ProcessEntry {
  const row = readRow(pid);
  if (row === null) throw new Error(`no process ${pid}`);
  return entryOf(row);
}

const lookOf = (members: readonly ProcessEntry[]): Look => ({ members, certain: true });

test('with nothing to end it waits for nothing', async () => {
  const timers = new SimulatedTimers();
  expect(await endTree(() => lookOf([]), { graceMs: GRACE_MS, timers })).toEqual({ processes: [], left: [] });
  expect(timers.lengths()).toEqual([]);
});

test('what not even SIGKILL ends is named after some patience, instead of waiting for ever', async () => {
  const timers = new SimulatedTimers();
  const stuck = await startBystander();
  const signals: string[] = [];
  const ending = endTree(() => lookOf([entry(stuck.pid)]), {
    graceMs: GRACE_MS,
    timers,
    kill: (pid, signal) => signals.push(`${pid} ${signal}`),
  });
  await timers.armed(GRACE_MS);
  timers.advance(GRACE_MS);
  await timers.armed(KILL_PATIENCE_MS);
  while (signals.length < 2) await new Promise(setImmediate);
  timers.advance(KILL_PATIENCE_MS);
  const { processes, left } = await ending;
  expect(signals).toEqual([`${stuck.pid} SIGTERM`, `${stuck.pid} SIGKILL`]);
  expect(left).toEqual(processes);
  expect(left.map(({ pid }) => pid)).toEqual([stuck.pid]);
});

test('a pid that belongs to another process by now, or lost its mark, is never signalled', async () => {
  const bystander = await startBystander({ PARLEY_TURN: desk.mark });
  const listed = entry(bystander.pid);
  const outdated = [
    { ...listed, startTime: '1' },
    { ...listed, mark: 'run_other/1' },
    { ...listed, mark: null },
  ];
  const signals: number[] = [];
  for (const old of outdated) {
    const rounds = [[old], []];
    await endTree(() => lookOf(rounds.shift() ?? []), {
      graceMs: GRACE_MS,
      timers: new SimulatedTimers(),
      kill: (pid) => signals.push(pid),
    });
  }
  expect(signals).toEqual([]);
  expect(isAlive(bystander.pid)).toBe(true);
  bystander.kill('SIGKILL');
  await new Promise((resolve) => bystander.once('exit', resolve));
});

test('that nobody is left is believed only after a second look, and only when it is certain', async () => {
  const late = await startBystander();
  const looks: Look[] = [
    lookOf([]),
    { members: [], certain: false },
    { members: [], certain: false },
    lookOf([entry(late.pid)]),
  ];
  const { processes } = await endTree(() => looks.shift() ?? lookOf([]), {
    graceMs: GRACE_MS,
    timers: new SimulatedTimers(),
  });
  expect(processes.map(({ pid }) => pid)).toEqual([late.pid]);
  expect(isAlive(late.pid)).toBe(false);
});

test('a process that cannot be identified causes only a short delay', async () => {
  expect(
    await endTree(() => ({ members: [], certain: false }), { graceMs: GRACE_MS, timers: new SimulatedTimers() }),
  ).toEqual({ processes: [], left: [] });
});
