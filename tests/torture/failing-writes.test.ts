// A conversation in which one write is refused, each in turn from the first to the last, by a full or a broken disk,
// with none or half of it written, once or until there is space again. The caller gets an error, nothing that was
// acknowledged is lost, and the run ends, now or after the next start. PARLEY_DISK_EVERY: tests every n-th write, by
// default every thirty-sixth.
import { singleHost } from '../../src/ownership/single-host.js';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { systemClock } from '../../src/kernel/clock.js';
import { createIds } from '../../src/kernel/ids.js';
import { Orchestrator } from '../../src/orchestrator/orchestrator.js';
import { systemTimers } from '../../src/process/timers.js';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import type { Store } from '../../src/store/store.js';
import { alterStore } from '../support/altered-store.js';
import { breakDisk, type FailingDisk, type How } from '../support/failing-disk.js';
import { createRoot, expectSound, openBench, processesOf, standInRuntime } from '../support/orchestrated.js';
import { Figures, SEED } from '../support/torture.js';

const EVERY = Number(process.env['PARLEY_DISK_EVERY'] ?? 36);
const REQUEST = {
  engine: 'codex',
  prompt: '[[answer Hello.]][[stderr 1]][[ask Which?|A|B]][[answer Then.]][[done {"n":1}]]',
  execution_mode: 'interactive',
  permission: 'full',
  request_id: 'once',
} as const;
const CASES: readonly (readonly [How, number])[] = [
  ['ENOSPC', 1],
  ['half', 1],
  ['EIO', 1],
  ['half', Infinity],
];

const figures = new Figures('failing-writes');
afterAll(() => figures.tell());

function onDisk(store: Store, disk: FailingDisk): Store {
  return alterStore(store, {
    append: async (change) => (disk.check(), store.append(change)),
    createRun: async (run) => (disk.check(), store.createRun(run)),
  });
}

// Repeats a refused request, as a person would; the disk works again after the second time.
async function insist<T>(disk: FailingDisk, ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (error) {
      expect(String(error), 'the error of the caller').toMatch(/ENOSPC|EIO|disk is full/);
      figures.add('calls refused');
      if (tries > 1) disk.heal();
    }
  }
}

// Returns how many writes were refused, and which was the first of the call that starts the run.
async function converse(
  root: string,
  how: How,
  times: number,
  at: number,
): Promise<{ failed: number; created: number }> {
  const data = await openDataDir(join(root, 'data'), { pid: process.pid });
  const disk = await breakDisk(join(root, 'data'), { at, times, how });
  const failures: unknown[] = [];
  let accepted: string | null = null;
  let created = 0;
  try {
    const store = onDisk(data.store, disk);
    const orchestrator = await Orchestrator.open(
      {
        store,
        clock: systemClock,
        ids: createIds(systemClock),
        timers: systemTimers,
        dataDir: data.path,
        queueLimit: () => 10,
        ...singleHost(store),
        runtime: standInRuntime(root),
        mayNeedProcess: false,
      },
      { slots: 1, recovery: { queued: 'requeue' }, onFailure: (_run, error) => failures.push(error) },
    );
    created = disk.writes + 1;
    const { run_id: runId } = await insist(disk, () => orchestrator.create(REQUEST));
    const waitForEnd = async () => {
      // After a refusal the disk soon has space: a run that could not be ended before is ended then. Not sooner,
      // however slow the machine is.
      const limit = setInterval(() => void (disk.failed > 0 && disk.heal()), 300);
      try {
        return await orchestrator.waitUntilIdle(runId);
      } finally {
        clearInterval(limit);
      }
    };
    const first = await waitForEnd();
    if (first.status === 'waiting_user') {
      const pending = await store.loadPendingInteraction(runId);
      accepted = pending?.interaction_id ?? '';
      await insist(disk, () =>
        orchestrator.reply(runId, { interaction_id: accepted ?? '', response: 'B', idempotency_key: 'k' }),
      );
      await waitForEnd();
    }
    disk.heal();
    await orchestrator.close();
    expect(processesOf(runId)).toEqual([]);
  } finally {
    disk.restore();
    await data.close();
  }
  const where = `${how}, ${times} times from write ${at} of ${disk.writes}`;
  for (const call of disk.refused) figures.add(`of them ${call}`);
  const again = await openBench(root);
  const run = await again.orchestrator.create(REQUEST);
  // Whatever could not be written, the run is complete after the next start.
  const ended = await expectSound(again, run.run_id);
  expect(['succeeded', 'failed'], where).toContain(ended.status);
  if (ended.status === 'failed')
    expect(`${ended.error?.code} ${ended.error?.message}`, where).toMatch(
      /DISK_FULL .*(ENOSPC|disk is full)|INTERNAL .*EIO/,
    );
  if (disk.failed === 0) expect(ended.status, where).toBe('succeeded');
  if (accepted !== null) expect((await again.data.store.loadInteraction(accepted))?.state, where).toBe('answered');
  if (ended.status === 'succeeded')
    expect(existsSync(join(root, 'data', 'runs', run.run_id, 'result.json')), where).toBe(true);
  figures.add(`runs ${ended.status}`);
  figures.add('failures told', failures.length);
  await again.close();
  return { failed: disk.failed, created };
}

async function play(how: How, times: number, at: number): ReturnType<typeof converse> {
  const root = createRoot();
  const promised = await converse(root, how, times, at);
  rmSync(root, { recursive: true, force: true });
  figures.add('writes refused', promised.failed);
  return promised;
}

test.each(CASES)(
  `each write in its turn is refused by %s, %d times (every ${EVERY}th, seed ${SEED})`,
  { timeout: 60_000 + 300_000 / EVERY },
  async (how, times) => {
    for (let at = 1 + (SEED % EVERY), conversations = 0; ; at += EVERY, conversations += 1) {
      const { failed } = await play(how, times, at);
      if (failed > 0) continue;
      // The last one had no write that late; without any before it nothing would have been tested.
      expect(conversations, 'conversations with a refused write').toBeGreaterThan(0);
      return;
    }
  },
);

test.each(CASES)(
  'creating a run while the disk fails by %s, %d times, is refused, and a retry makes one run',
  async (how, times) => {
    const { created } = await play(how, times, Infinity);
    const before = figures.get('calls refused');
    expect((await play(how, times, created)).failed).toBeGreaterThan(0);
    expect(figures.get('calls refused')).toBeGreaterThan(before);
  },
);
