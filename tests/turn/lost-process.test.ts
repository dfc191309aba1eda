// A turn of a sticky run whose process has exited: the run fails, and a cancel request at the same time cannot keep it
// running. On a real store, with a process that is a stub.
import { mkdirSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createRun } from '../../src/commands/create-run.js';
import { replyToRun } from '../../src/commands/reply.js';
import type { Resident } from '../../src/engines/resident.js';
import { newMemory } from '../../src/engines/turn-parser.js';
import type { Actor, RunRecord, Store } from '../../src/store/store.js';
import { Residents } from '../../src/turn/residents/residents.js';
import { runTurn } from '../../src/turn/run-turn.js';
import { TurnControl } from '../../src/turn/turn-control.js';
import { newStatus } from '../store/conformance.js';
import { alterStore } from '../support/altered-store.js';
import { CommandBench } from '../support/command-bench.js';
import { Gate } from '../support/gate.js';

const ANN: Actor = { kind: 'user', name: 'ann' };

let bench: CommandBench;
beforeEach(async () => {
  bench = await CommandBench.open();
});
afterEach(() => bench.close());

// A sticky run that was answered, and whose second turn can start.
async function createAnswered(): Promise<RunRecord> {
  bench.stub.resume = { resumes: false, problem: 'the engine cannot resume' };
  const created = await createRun(
    { ...bench.deps, mayNeedProcess: true },
    { engine: 'codex-app-server', prompt: 'Build it.', execution_mode: 'interactive' },
    {},
  );
  for (const folder of [created.spec.cwd, created.spec.home ?? '']) mkdirSync(folder, { recursive: true });
  const { run, question } = await bench.ask(await bench.apply(created, { event: 'turn.started' }));
  const reply = { interaction_id: question.interaction_id, response: 'blue' };
  return replyToRun(bench.deps, run.run_id, { reply, actor: null });
}

// Runs the turn of the answer. The process that waited for the answer has exited.
function runLost(queued: RunRecord, { control, store }: { control: TurnControl; store: Store }): Promise<RunRecord> {
  const end = { exit: { code: 0, signal: null }, error: null };
  const resident = { isAlive: false, close: async () => end, ended: new Promise(() => {}) } as unknown as Resident;
  const residents = new Residents(bench.timers, { parkAfterMs: 1000, max: 1 }, () => {});
  residents.keep(queued.run_id, { resident, memory: newMemory(null), request: null, isNeeded: true });
  const { runtime } = bench.deps;
  const deps = { ...bench.deps, store, runtime: { ...runtime, findProgram: async () => ['codex'] } };
  return runTurn({ deps, queued, control, residents, marksStarts: false });
}

const LOST = { status: 'failed', error: { code: 'INTERACTION_PROCESS_LOST' } };

async function lifecycleOf({ run_id: runId }: RunRecord): Promise<string[]> {
  return (await bench.eventsOf(runId))
    .filter(({ attempt_number: attempt }) => attempt === 2)
    .map(({ event, data }) => (event.type === 'lifecycle.state.changed' ? `to ${String(data['to'])}` : event.type));
}

test('a cancel request while the end of the run is being stored is not recorded, and the run fails', async () => {
  const queued = await createAnswered();
  const [arrived, release] = [new Gate(), new Gate()];
  const store = alterStore(bench.store, {
    append: async (change) => {
      if (newStatus(change) === 'failed') {
        arrived.open();
        await release.opened;
      }
      return bench.store.append(change);
    },
  });
  const control = new TurnControl();
  const turn = runLost(queued, { control, store });
  await arrived.opened;
  await control.cancel({ at: bench.clock.now(), actor: ANN });
  release.open();
  expect(await turn).toMatchObject(LOST);
  expect(await bench.store.loadRun(queued.run_id)).toMatchObject({ ...LOST, cancel_requested: null });
  expect(await lifecycleOf(queued)).toEqual(['lifecycle.turn.started', 'to running', 'to failed']);
});

test('a cancel request that is being stored when the process is found lost precedes the end of the run', async () => {
  const queued = await createAnswered();
  const control = new TurnControl();
  await control.cancel({ at: bench.clock.now(), actor: ANN });
  expect(await runLost(queued, { control, store: bench.store })).toMatchObject(LOST);
  expect(await bench.store.loadRun(queued.run_id)).toMatchObject({ ...LOST, cancel_requested: { actor: ANN } });
  expect(await lifecycleOf(queued)).toEqual([
    'lifecycle.turn.started',
    'to running',
    'lifecycle.cancel.requested',
    'to failed',
  ]);
});
