// The resident processes of waiting runs, with processes that the test controls: kept, parked, handed over, lost.
import { beforeEach, describe, expect, test } from 'vitest';
import type { NativeRequest } from '../../src/engines/native-request.js';
import type { Resident } from '../../src/engines/resident.js';
import { newMemory } from '../../src/engines/turn-parser.js';
import { Residents, type IdleResident } from '../../src/turn/residents/residents.js';
import { Gate } from '../support/gate.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

const PARK_MS = 1000;
const tick = () => new Promise((resolve) => setImmediate(resolve));

let timers: SimulatedTimers;
let residents: Residents;
let lost: string[];
let ended: string[];

beforeEach(() => {
  timers = new SimulatedTimers();
  [lost, ended] = [[], []];
  residents = new Residents(
    timers,
    { parkAfterMs: PARK_MS, max: 2 },
    (runId) => lost.push(runId),
    (runId) => ended.push(runId),
  );
});

interface Scene extends IdleResident {
  readonly exit: () => void;
  readonly forget: (error?: Error) => void;
  readonly closing: Gate;
  closes: number;
  // Ends the watch for a forgotten request.
  signal: AbortSignal | null;
}

// `closing` opens when the process may exit after a close.
function idleResidentOf({ isNeeded = false, asks = false, waits = false } = {}): Scene {
  const [exited, closing] = [new Gate(), new Gate()];
  let [resolve, reject]: [() => void, (error: Error) => void] = [() => {}, () => {}];
  const forgotten = new Promise<void>((done, fail) => ([resolve, reject] = [done, fail]));
  forgotten.catch(() => {});
  if (!waits) closing.open();
  const scene: Scene = {
    closes: 0,
    signal: null,
    closing,
    exit: () => exited.open(),
    forget: (error) => (error ? reject(error) : resolve()),
    isNeeded,
    request: asks ? ({} as NativeRequest) : null,
    memory: newMemory(),
    resident: {
      ended: exited.opened,
      close: async () => {
        scene.closes += 1;
        await closing.opened;
      },
      forgets: (_request: NativeRequest, signal: AbortSignal) => {
        scene.signal = signal;
        return forgotten;
      },
    } as unknown as Resident,
  };
  return scene;
}

test('a kept process waits for its answer and is handed over once', async () => {
  const idleResident = idleResidentOf();
  residents.keep('run_1', idleResident);
  expect([residents.has('run_1'), residents.has('run_2'), residents.count]).toEqual([true, false, 1]);
  expect([residents.kept(), residents.idleResidentOf('run_1'), residents.idleResidentOf('run_2')]).toEqual([
    ['run_1'],
    idleResident,
    null,
  ]);
  expect(await residents.claim('run_1')).toBe(idleResident);
  expect(await residents.claim('run_1')).toBeNull();
  expect([residents.has('run_1'), residents.count, timers.lengths()]).toEqual([false, 0, []]);
  // It belongs to a turn now: its exit is not a loss.
  idleResident.exit();
  await tick();
  expect([lost, ended, idleResident.closes]).toEqual([[], [], 0]);
});

test('a process is parked after its time; a needed one is not', async () => {
  const [parkable, needed] = [idleResidentOf(), idleResidentOf({ isNeeded: true })];
  residents.keep('run_1', parkable);
  residents.keep('run_2', needed);
  expect(timers.lengths()).toEqual([PARK_MS]);
  timers.advance(PARK_MS);
  await tick();
  expect([parkable.closes, needed.closes, ended, lost, residents.kept()]).toEqual([1, 0, ['run_1'], [], ['run_2']]);
});

test('a process that is being ended is not handed over: the caller waits for its exit', async () => {
  const idleResident = idleResidentOf({ waits: true });
  residents.keep('run_1', idleResident);
  const end = residents.end('run_1');
  void residents.end('run_1');
  expect([residents.has('run_1'), residents.count, residents.kept()]).toEqual([false, 0, ['run_1']]);
  expect([residents.idleResidentOf('run_1'), timers.lengths()]).toEqual([idleResident, []]);
  let taken: unknown = 'nothing yet';
  const claim = residents.claim('run_1').then((result) => (taken = result));
  await tick();
  expect(taken).toBe('nothing yet');
  idleResident.closing.open();
  await Promise.all([end, claim]);
  expect([taken, idleResident.closes, ended, residents.kept()]).toEqual([null, 1, ['run_1'], []]);
});

test('the end of a run without a process does nothing', async () => {
  await residents.end('run_1');
  expect(ended).toEqual([]);
});

describe('a process that exits by itself', () => {
  test('is a loss if the run needs it', async () => {
    const [needed, other] = [idleResidentOf({ isNeeded: true }), idleResidentOf()];
    residents.keep('run_1', needed);
    residents.keep('run_2', other);
    needed.exit();
    other.exit();
    await tick();
    expect([lost, ended, residents.kept(), timers.lengths()]).toEqual([['run_1'], ['run_1', 'run_2'], [], []]);
  });

  test('is no loss while it is being ended', async () => {
    const idleResident = idleResidentOf({ isNeeded: true, waits: true });
    residents.keep('run_1', idleResident);
    const end = residents.end('run_1');
    idleResident.exit();
    await tick();
    idleResident.closing.open();
    await end;
    expect([lost, ended]).toEqual([[], ['run_1']]);
  });

  test('does not touch the process that took its place', async () => {
    const [first, second] = [idleResidentOf({ isNeeded: true, waits: true }), idleResidentOf({ isNeeded: true })];
    residents.keep('run_1', first);
    const end = residents.end('run_1');
    residents.keep('run_1', second);
    first.exit();
    first.closing.open();
    await end;
    await tick();
    expect([lost, ended, residents.idleResidentOf('run_1')]).toEqual([[], [], second]);
  });
});

describe('a process that forgets its request', () => {
  test('is ended', async () => {
    const idleResident = idleResidentOf({ asks: true });
    residents.keep('run_1', idleResident);
    idleResident.forget();
    await tick();
    expect([idleResident.closes, ended]).toEqual([1, ['run_1']]);
  });

  test('is kept if the run needs it, if it asked nothing, or if the watch fails', async () => {
    const needed = idleResidentOf({ asks: true, isNeeded: true });
    const silent = idleResidentOf();
    const failing = idleResidentOf({ asks: true });
    residents.keep('run_1', needed);
    residents.keep('run_2', silent);
    residents.keep('run_3', failing);
    needed.forget();
    silent.forget();
    failing.forget(new Error('the connection was closed'));
    await tick();
    expect([needed.closes, silent.closes, failing.closes]).toEqual([0, 0, 0]);
  });

  test('is no longer watched after it exited', async () => {
    const idleResident = idleResidentOf({ asks: true });
    residents.keep('run_1', idleResident);
    expect(idleResident.signal?.aborted).toBe(false);
    idleResident.exit();
    await tick();
    expect(idleResident.signal?.aborted).toBe(true);
  });

  test('is left alone after it exited or was handed over', async () => {
    const [taken, exited] = [idleResidentOf({ asks: true }), idleResidentOf({ asks: true })];
    residents.keep('run_1', taken);
    await residents.claim('run_1');
    residents.keep('run_2', exited);
    exited.exit();
    await tick();
    residents.keep('run_2', idleResidentOf());
    taken.forget();
    exited.forget();
    await tick();
    expect([taken.closes, exited.closes, residents.kept()]).toEqual([0, 0, ['run_2']]);
  });
});

describe('more processes than allowed', () => {
  test('end the oldest one', async () => {
    const all = [1, 2, 3].map(() => idleResidentOf());
    for (const [index, idleResident] of all.entries()) residents.keep(`run_${index + 1}`, idleResident);
    await tick();
    expect(all.map(({ closes }) => closes)).toEqual([1, 0, 0]);
    expect(residents.kept()).toEqual(['run_2', 'run_3']);
  });

  test('do not count needed processes or those that are being ended', async () => {
    const needed = idleResidentOf({ isNeeded: true });
    const ending = idleResidentOf({ waits: true });
    const others = [idleResidentOf(), idleResidentOf()];
    residents.keep('run_0', needed);
    residents.keep('run_1', ending);
    void residents.end('run_1');
    for (const [index, idleResident] of others.entries()) residents.keep(`run_${index + 2}`, idleResident);
    await tick();
    expect([needed.closes, ...others.map(({ closes }) => closes)]).toEqual([0, 0, 0]);
    ending.closing.open();
  });
});

test('the close ends every process', async () => {
  const all = [idleResidentOf(), idleResidentOf({ isNeeded: true })];
  for (const [index, idleResident] of all.entries()) residents.keep(`run_${index}`, idleResident);
  await residents.close();
  expect([all.map(({ closes }) => closes), residents.kept(), lost]).toEqual([[1, 1], [], []]);
});
