// An orchestrator in its own process that runs a run of the resident engine up to a point, reports it, and waits to be
// killed. Runs the build.
import { singleHost } from '../../dist/ownership/single-host.js';
import { readdirSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startResident } from '../../dist/app-server/start-resident.js';
import { systemClock } from '../../dist/kernel/clock.js';
import { createIds } from '../../dist/kernel/ids.js';
import { Orchestrator } from '../../dist/orchestrator/orchestrator.js';
import { systemTimers } from '../../dist/process/timers.js';
import { openDataDir } from '../../dist/store/sqlite/data-dir.js';

const [root, prompt, until] = process.argv.slice(2);
const BIN = fileURLToPath(new URL('../stand-ins/bin/codex-app-server-stand-in', import.meta.url));
const data = await openDataDir(join(root, 'data'), { pid: process.pid });
const runtime = {
  findProgram: async () => [BIN],
  environment: () => ({ PATH: process.env.PATH, HOME: root, STAND_IN_LOG: join(root, 'starts.jsonl') }),
  hasSession: async ({ handle_value: id, home }) =>
    readdirSync(home, { recursive: true, encoding: 'utf8' }).some((name) => name.includes(id)),
  newSessionId: () => '',
  startResident: (_engine, start) =>
    startResident(start, {
      user: { home: join(root, 'user'), env: { PATH: process.env.PATH } },
      platform: 'none',
      pid: process.pid,
      clock: systemClock,
      timers: systemTimers,
    }),
};
const orchestrator = await Orchestrator.open(
  {
    store: data.store,
    clock: systemClock,
    ids: createIds(systemClock),
    timers: systemTimers,
    dataDir: data.path,
    queueLimit: () => 10,
    ...singleHost(data.store),
    runtime,
  },
  { slots: 1, recovery: { queued: 'fail' }, onFailure: (_run, error) => console.error(error) },
);
const { run_id: runId } = await orchestrator.create({
  engine: 'codex-app-server',
  prompt,
  execution_mode: 'interactive',
});

// Hanging: when the command before it has ended.
const isThere = async () => {
  if (until === 'waiting_user') return (await data.store.loadRun(runId)).status === until;
  return (await data.store.readJournal(runId, 'rasp', { limit: 1000 })).some((line) =>
    line.includes('"tool.call.completed"'),
  );
};
const watch = orchestrator.wakeups.watch(runId);
for (;;) {
  const { version } = watch;
  if (await isThere()) break;
  await watch.changed(version);
}
writeSync(1, `${runId}\n`);
setInterval(() => {}, 1_000_000);
