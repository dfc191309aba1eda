import { expect, test } from 'vitest';
import { readStartTime } from '../../src/process/process-table.js';
import { ProcessTree } from '../../src/process/process-tree.js';
import { SimulatedTimers } from '../support/simulated-timers.js';
import { desk, Heard, isAlive, shell, specOf, start, startBystander } from './desk.js';

const rootOf = (pid: number) => ({ pid, startTime: readStartTime(pid) });
const never = () => false;
const otherMark = () => desk.mark.replace('/1', '/2');
const isOther = (mark: string) => mark === otherMark();

test('a member stays one after its parent died, although it has neither mark nor session to be known by', async () => {
  const heard = new Heard();
  const child = await start(
    specOf(shell('env -i setsid sh -c "echo ready; exec sleep 1000" & wait')),
    heard,
    new SimulatedTimers(),
  );
  await heard.says('ready');
  const tree = new ProcessTree(never, rootOf(child.pid));
  const orphan = tree.look().members.find(({ mark }) => mark === null);
  process.kill(child.pid, 'SIGKILL');
  while (isAlive(child.pid)) await new Promise(setImmediate);
  const left = tree.look().members;
  for (const { pid } of left) process.kill(pid, 'SIGTERM');
  expect(left.map(({ pid }) => pid)).toEqual([orphan?.pid]);
  await child.done;
});

test('a reused pid is no member, nor is the session that its new owner founded', async () => {
  const other = await startBystander();
  expect(new ProcessTree(never, rootOf(other.pid)).look().members.map(({ pid }) => pid)).toEqual([other.pid]);
  expect(new ProcessTree(never, { pid: other.pid, startTime: '1' }).look().members).toEqual([]);
});

test('nothing older than the root is a member, whatever it carries', async () => {
  const older = await startBystander({ PARLEY_TURN: otherMark() });
  // Not pid 0: in a container that is the session of processes whose session was created outside of it.
  const later = { pid: -1, startTime: String(Number(readStartTime(older.pid)) + 1) };
  expect(new ProcessTree(isOther, null).look().members.map(({ pid }) => pid)).toEqual([older.pid]);
  expect(new ProcessTree(isOther, later).look().members).toEqual([]);
});

test('this process and those that started it are never members', async () => {
  const child = await startBystander();
  const pids = new ProcessTree(never, rootOf(process.ppid)).look().members.map(({ pid }) => pid);
  expect(pids).not.toContain(process.pid);
  expect(pids).not.toContain(process.ppid);
  expect(pids).not.toContain(child.pid);
});
