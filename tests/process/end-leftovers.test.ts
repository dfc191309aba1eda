import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { endLeftovers } from '../../src/process/end-leftovers.js';
import { descendantsOf } from '../../src/process/process-table.js';
import { SimulatedTimers } from '../support/simulated-timers.js';
import { desk, fixture, GRACE_MS, isAlive, marked, startBystander } from './desk.js';

const isOurs = (mark: string) => mark === desk.mark;

// Starts a server with an agent and kills it; returns the pids of the agent's whole tree.
async function leaveBehind(mark: string): Promise<number[]> {
  const [program = '', ...args] = fixture('server', mark);
  const server = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(server.stdout, 'data');
  const agent = Number(String(line));
  // Waits until the one that drops its environment has done so: before, it still has the mark of its parent.
  while (!descendantsOf(agent).some((entry) => entry.mark === null))
    await new Promise((resolve) => setImmediate(resolve));
  const pids = [agent, ...descendantsOf(agent).map(({ pid }) => pid)];
  server.kill('SIGKILL');
  await once(server, 'exit');
  return pids;
}

test('processes left by a killed server are found by mark and ended with descendants, even unmarked ones', async () => {
  const pids = await leaveBehind(desk.mark);
  expect(pids.length).toBeGreaterThanOrEqual(3);
  expect(pids.filter(isAlive)).toEqual(pids);
  const ended = await endLeftovers(isOurs, { graceMs: GRACE_MS });
  expect(ended.map(({ pid }) => pid).toSorted()).toEqual(pids.toSorted());
  expect(new Set(ended.map(({ mark }) => mark))).toEqual(new Set([desk.mark, null]));
  expect(pids.filter(isAlive)).toEqual([]);
});

test('only marks that are ours are ended', async () => {
  const other = await startBystander({ PARLEY_TURN: desk.mark.replace('/1', '/2') });
  const plain = await startBystander();
  expect(await endLeftovers(isOurs, { graceMs: GRACE_MS })).toEqual([]);
  expect([other, plain].map(({ pid }) => isAlive(pid))).toEqual([true, true]);
});

test('with nothing left it answers nothing, and twice is as good as once', async () => {
  await leaveBehind(desk.mark);
  expect(await endLeftovers(isOurs, { graceMs: GRACE_MS })).not.toEqual([]);
  expect(await endLeftovers(isOurs, { graceMs: GRACE_MS })).toEqual([]);
  expect(marked()).toEqual([]);
});

test('a leftover that ignores SIGTERM is killed after the grace', async () => {
  const timers = new SimulatedTimers();
  const [program = '', ...args] = fixture('deaf');
  const deaf = spawn(program, args, {
    detached: true,
    env: { PARLEY_TURN: desk.mark },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(deaf.stdout, 'data');
  const exited = once(deaf, 'exit');
  const ending = endLeftovers(isOurs, { graceMs: GRACE_MS, timers });
  expect(String(await once(deaf.stdout, 'data'))).toBe('heard SIGTERM\n');
  timers.advance(GRACE_MS);
  expect((await ending).map(({ pid }) => pid)).toEqual([deaf.pid]);
  expect(await exited).toEqual([null, 'SIGKILL']);
});
