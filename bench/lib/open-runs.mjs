// Opens durable runs in this process, in their own data directory. The benchmark is notified before and after each
// change is stored.
import { singleHost } from '../../dist/ownership/single-host.js';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createIds } from '../../dist/kernel/ids.js';
import { systemClock } from '../../dist/kernel/clock.js';
import { Orchestrator } from '../../dist/orchestrator/orchestrator.js';
import { systemTimers } from '../../dist/process/timers.js';
import { openDataDir } from '../../dist/store/sqlite/data-dir.js';

const BIN = fileURLToPath(new URL('../../tests/stand-ins/bin/codex', import.meta.url));

export async function open(dir, { program = [BIN], onAsked = () => {}, onChange = () => {} } = {}) {
  mkdirSync(dir, { recursive: true });
  const data = await openDataDir(join(dir, 'data'), { pid: process.pid });
  const { store } = data;
  const watched = Object.fromEntries(
    Object.getOwnPropertyNames(Object.getPrototypeOf(store))
      .filter((name) => name !== 'constructor')
      .map((name) => [name, store[name].bind(store)]),
  );
  watched.append = async (change) => {
    onAsked(change);
    const outcome = await store.append(change);
    if (outcome.committed) onChange(change);
    return outcome;
  };
  const runtime = {
    findProgram: async () => program,
    environment: (_engine, run) => ({ PATH: process.env.PATH, HOME: run.spec.home ?? dir }),
    hasSession: async () => true,
    newSessionId: () => '00000000-0000-4000-8000-000000000001',
  };
  const deps = {
    store: watched,
    clock: systemClock,
    ids: createIds(systemClock),
    timers: systemTimers,
    dataDir: data.path,
    runtime,
    queueLimit: () => 1000,
    ...singleHost(watched),
  };
  const orchestrator = await Orchestrator.open(deps, {
    slots: 2,
    recovery: { queued: 'fail' },
    onFailure: (_run, error) => console.error(error),
  });
  return {
    data,
    orchestrator,
    close: async () => {
      await orchestrator.close();
      await data.close();
    },
  };
}
