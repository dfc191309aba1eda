// An orchestrator in its own process that kills itself at a chosen point. Runs the build. It is also the client: it
// creates its conversations (again after a restart), answers their questions, and reports every confirmation.
import { singleHost } from '../../dist/ownership/single-host.js';
import { readdirSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../dist/kernel/clock.js';
import { createIds } from '../../dist/kernel/ids.js';
import { Orchestrator } from '../../dist/orchestrator/orchestrator.js';
import { systemTimers } from '../../dist/process/timers.js';
import { openDataDir } from '../../dist/store/sqlite/data-dir.js';

const BIN = fileURLToPath(new URL('../stand-ins/bin/', import.meta.url));
const { root, requests, response, slots, queued, kill } = JSON.parse(process.argv[2]);

function tell(fact) {
  writeSync(1, `${JSON.stringify(fact)}\n`);
}

function die() {
  process.kill(process.pid, 'SIGKILL');
  return new Promise(() => {});
}

// Waits for some ticks of the event loop: into the middle of a spawn, of a chunk, or of any other work.
async function dieAfter(ticks) {
  for (let left = ticks; left > 0; left -= 1) await new Promise((resolve) => setImmediate(resolve));
  return die();
}

function kindOf({ before, after }) {
  if (after.status === before.status) return 'flush';
  if (after.status === 'waiting_user') return 'ask';
  if (before.status === 'waiting_user') return 'reply';
  return after.status === 'running' ? 'start' : 'end';
}

// A store that kills the process: at one write of a kind in one turn, or at the n-th call of any kind.
function armed(store) {
  let calls = 0;
  let turn = 0;
  const isTarget = (kind) => (kill.kind === undefined ? calls === kill.call : kind === kill.kind && turn === kill.turn);
  return new Proxy(store, {
    get(target, name) {
      if (name === 'onCommitted' || name === 'onMissed') return target[name].bind(target);
      // Reads only, at the start.
      if (name === 'summaries' || typeof target[name] !== 'function') return target[name];
      return async (...args) => {
        calls += 1;
        const kind = name === 'createRun' ? 'create' : name === 'append' ? kindOf(args[0]) : 'read';
        if (kind === 'start') turn += 1;
        const hit = isTarget(kind);
        if (hit && kill.moment === 'before') await die();
        const answer = await target[name](...args);
        if (hit && kill.moment === 'after') await die();
        if (hit && kill.moment === 'later') void dieAfter(kill.ticks);
        return answer;
      };
    },
  });
}

let sessions = 0;
const runtime = {
  findProgram: async (engine) => [join(BIN, engine.name)],
  environment: (_engine, run) => ({
    PATH: process.env.PATH ?? '',
    HOME: run.spec.home ?? root,
    STAND_IN_LOG: join(root, 'starts.jsonl'),
  }),
  hasSession: async ({ handle_value: id, home }) =>
    readdirSync(home, { recursive: true, encoding: 'utf8' }).some(
      (name) => name.includes(id) || name.includes(id.slice(0, 8)),
    ),
  newSessionId: () =>
    `${String((process.pid * 1000 + (sessions += 1)) % 100_000_000).padStart(8, '0')}-0000-4000-8000-000000000001`,
};

async function converse(store, orchestrator, request) {
  const { run_id: runId } = await orchestrator.create(request);
  tell({ created: runId });
  for (
    let run = await orchestrator.waitUntilIdle(runId);
    run.status === 'waiting_user';
    run = await orchestrator.waitUntilIdle(runId)
  ) {
    const { interaction_id: id } = await store.loadPendingInteraction(runId);
    await orchestrator.reply(runId, { interaction_id: id, response, idempotency_key: id });
    tell({ accepted: id });
  }
}

const data = await openDataDir(join(root, 'data'), { pid: process.pid });
const store = armed(data.store);
const failures = [];
const deps = {
  store,
  clock: systemClock,
  ids: createIds(systemClock),
  timers: systemTimers,
  dataDir: data.path,
  runtime,
  queueLimit: () => 1000,
  ...singleHost(store),
};
const orchestrator = await Orchestrator.open(deps, {
  slots,
  recovery: { queued },
  onFailure: (_run, error) => failures.push(error),
});
await Promise.all(requests.map((request) => converse(store, orchestrator, request)));
await orchestrator.close();
await data.close();
for (const failure of failures) throw failure;
