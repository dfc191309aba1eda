// A store that can no longer write: the engine is ended, nothing is partly written, and the next start reports what
// happened.
import { newStatus } from '../store/conformance.js';
import { describe, expect, test } from 'vitest';
import { Orchestrator } from '../../src/orchestrator/orchestrator.js';
import type { RunAppend, Store } from '../../src/store/store.js';
import { alterStore, isFlush } from '../support/altered-store.js';
import { createRoot, expectSound, openBench } from '../support/orchestrated.js';

const FULL = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC', syscall: 'write' });

// From the change that the test names on, nothing can be written.
function fullFrom(store: Store, isFull: (change: RunAppend) => boolean): Store {
  let full = false;
  return new Proxy(store, {
    get: (target, name: keyof Store) => {
      const member = target[name];
      if (name !== 'append')
        return typeof member === 'function' ? (member as (...args: unknown[]) => unknown).bind(target) : member;
      return async (change: RunAppend) => {
        full ||= isFull(change);
        if (full) throw FULL;
        return target.append(change);
      };
    },
  });
}

const CASES: [string, (change: RunAppend) => boolean, string][] = [
  ['when the turn would begin', (change) => newStatus(change) === 'running', 'queued'],
  ['in the middle of the output', (change) => isFlush(change), 'running'],
  ['when the run would begin to wait', (change) => newStatus(change) === 'waiting_user', 'running'],
];

describe('a full disk', () => {
  test.each(CASES)(
    '%s leaves the run as it was last stored, and the next start ends it with its code',
    async (_when, isFull, left) => {
      const root = createRoot();
      const bench = await openBench(root);
      await bench.orchestrator.close();
      const failures: unknown[] = [];
      const orchestrator = await Orchestrator.open(
        { ...bench.deps, store: fullFrom(bench.data.store, isFull) },
        { slots: 1, recovery: { queued: 'fail' }, onFailure: (_run, error) => failures.push(error) },
      );
      const { run_id: runId } = await orchestrator.create({
        engine: 'codex',
        prompt: '[[events 3000 100]][[ask Which?]]',
        execution_mode: 'interactive',
      });
      while (failures.length === 0) await new Promise((resolve) => setImmediate(resolve));
      await orchestrator.close();
      expect(failures).toContain(FULL);
      expect((await bench.data.store.loadRun(runId))?.status).toBe(left);
      await bench.data.close();
      const again = await openBench(root);
      expect(await expectSound(again, runId)).toMatchObject({
        status: 'failed',
        error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' },
      });
      await again.close();
    },
  );

  test.each([FULL, Object.assign(new Error('database or disk is full'), { code: 'ERR_SQLITE_ERROR' })])(
    'that has room again fails the run with a code of its own: $message',
    async (full) => {
      let isFull = true;
      const bench = await openBench(createRoot(), {
        store: (store) =>
          alterStore(store, {
            append: async (change) => {
              // In the middle of the output, once.
              if (!isFull || !isFlush(change)) return store.append(change);
              isFull = false;
              throw full;
            },
          }),
      });
      const { run_id: runId } = await bench.orchestrator.create({
        engine: 'codex',
        prompt: '[[events 3000 100]][[done 1]]',
      });
      await bench.orchestrator.waitUntilIdle(runId);
      const run = await expectSound(bench, runId);
      expect(run).toMatchObject({ status: 'failed', error: { code: 'DISK_FULL' } });
      expect(run.error?.message).toContain(`parley retry ${runId}`);
      expect(bench.failures).toEqual([full]);
      bench.failures.length = 0;
      await bench.close();
    },
  );
});
