// Opens an orchestrator on existing data, waits until everything is recovered, and closes it. Runs the build.
import { singleHost } from '../../dist/ownership/single-host.js';
import { join } from 'node:path';
import { systemClock } from '../../dist/kernel/clock.js';
import { createIds } from '../../dist/kernel/ids.js';
import { Orchestrator } from '../../dist/orchestrator/orchestrator.js';
import { systemTimers } from '../../dist/process/timers.js';
import { openDataDir } from '../../dist/store/sqlite/data-dir.js';

const { root } = JSON.parse(process.argv[2]);
const data = await openDataDir(join(root, 'data'), { pid: process.pid });
const runtime = {
  findProgram: async () => null,
  environment: () => ({}),
  hasSession: async () => true,
  newSessionId: () => '',
};
const fail = (_run, error) => {
  throw error;
};
const deps = {
  store: data.store,
  clock: systemClock,
  ids: createIds(systemClock),
  timers: systemTimers,
  dataDir: data.path,
  runtime,
  queueLimit: () => 1000,
  ...singleHost(data.store),
};
const orchestrator = await Orchestrator.open(deps, { slots: 1, recovery: { queued: 'fail' }, onFailure: fail });
await orchestrator.recovered();
await orchestrator.close();
await data.close();
