// Notifications about a run: none is missed between a read and the wait, and nothing remains of readers that have left.
import { expect, test } from 'vitest';
import { CommitWakeups } from '../../src/journal/wakeups.js';
import type { CommitListener, Store } from '../../src/store/store.js';

function open(): { wakeups: CommitWakeups; commit: (runId: string) => void } {
  const listeners = new Set<CommitListener>();
  const store = {
    onCommitted: (listener: CommitListener) => listeners.add(listener) && (() => listeners.delete(listener)),
    onMissed: () => () => {},
  } as unknown as Store;
  const commit = (runId: string): void => {
    for (const listener of listeners) listener({ run_id: runId, origin: 'here', ms: 0 });
  };
  return { wakeups: new CommitWakeups(store), commit };
}

test('a commit between the look and the wait ends the wait at once, one of another run does not', async () => {
  const { wakeups, commit } = open();
  const watch = wakeups.watch('run_1');
  const { version } = watch;
  commit('run_2');
  expect(watch.version).toBe(version);
  commit('run_1');
  await watch.changed(version);
  let woken = false;
  void watch.changed(watch.version).then(() => (woken = true));
  await Promise.resolve();
  expect(woken).toBe(false);
  commit('run_1');
  await Promise.resolve();
  expect(woken).toBe(true);
});

test('a version never comes again, also when everybody has gone meanwhile', () => {
  const { wakeups, commit } = open();
  const seen = new Set<number>();
  for (let round = 0; round < 5; round += 1) {
    const watch = wakeups.watch('run_1');
    expect(seen.has(watch.version)).toBe(false);
    seen.add(watch.version);
    watch.close();
    commit('run_1');
  }
});

test('who closes is let go, once, and nothing is kept of a run that nobody watches', async () => {
  const { wakeups, commit } = open();
  const [one, two] = [wakeups.watch('run_1'), wakeups.watch('run_1')];
  const waiting = one.changed(one.version);
  one.close();
  one.close();
  await waiting;
  expect(wakeups.watched).toBe(1);
  two.close();
  expect(wakeups.watched).toBe(0);
  commit('run_1');
  await one.changed(one.version);
});

test('the end wakes everybody once more', async () => {
  const { wakeups } = open();
  const watch = wakeups.watch('run_1');
  const waiting = watch.changed(watch.version);
  wakeups.close();
  await waiting;
});

test('a run is followed in the store as long as it has a watcher', () => {
  const calls: string[] = [];
  const wakeups = new CommitWakeups({
    onCommitted: () => () => {},
    onMissed: () => () => {},
    follow: (runId: string) => (calls.push(`follow ${runId}`), () => calls.push(`stop ${runId}`)),
  } as unknown as Store);
  const watches = ['run_1', 'run_1', 'run_2'].map((runId) => wakeups.watch(runId));
  for (const watch of watches) watch.close();
  wakeups.watch('run_1').close();
  expect(calls).toEqual(['follow run_1', 'follow run_2', 'stop run_1', 'stop run_2', 'follow run_1', 'stop run_1']);
});
