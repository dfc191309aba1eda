// A real server and real engines, killed and stopped at random (seeded), while clients create, answer (again, with the
// same key), cancel, delete and watch runs. Every run ends, no answer is lost or applied twice, watchers miss nothing,
// verify finds nothing, and no process is left. PARLEY_STOPS_RUNS: number of runs.
import { afterAll, expect, test } from 'vitest';
import { listMarked } from '../../src/process/process-table.js';
import type { RunRecord } from '../../src/store/store.js';
import { listRuns, parley, withData } from '../support/command.js';
import { expectNothingTwice, twice } from '../support/engine-trace.js';
import { seededRandom } from '../support/seeded-random.js';
import { DEEDS, ShakenServer } from '../support/shaken-server.js';
import { chance, Figures, SEED } from '../support/torture.js';
import {
  answerAll,
  answersTold,
  answerTo,
  expectProved,
  expectWhole,
  live,
  planIdle,
  planRuns,
  readApproved,
  type Tortured,
} from '../support/tortured-runs.js';

const RUNS = Number(process.env['PARLEY_STOPS_RUNS'] ?? 9);
// The possible ends of a run that was not canceled: successful, interrupted with its server or its engine, or answered
// before its session existed.
const ENDS = [
  'succeeded',
  'ORCHESTRATOR_RESTART_INTERRUPTED',
  'ENGINE_EXITED',
  'ENGINE_TURN_FAILED',
  'SESSION_RESUME_FAILED',
];

const figures = new Figures('stops');
afterAll(() => figures.tell());

const outcomeOf = ({ status, error }: RunRecord): string => (status === 'failed' ? (error?.code ?? '') : status);

test(
  `${RUNS} runs end on a server that is killed and stopped with its engines (seed ${SEED})`,
  { timeout: 120_000 + RUNS * 6000 },
  async () => {
    const living: Promise<void>[] = [];
    const begin = async (run: Tortured): Promise<void> => {
      run.runId = (await world.somewhere((client) => client.create(run.request))).run_id;
      living.push(live(world, run));
    };
    const idle: Tortured[] = [];
    const world: ShakenServer = new ShakenServer(
      chance(1),
      (deed) => figures.add(deed),
      async () => {
        const run = planIdle(idle.length, SEED);
        idle.push(run);
        await begin(run);
      },
    );
    await world.begin();
    const planned = planRuns(RUNS, SEED, seededRandom(SEED), world);
    let isDone = false;
    // The requests that the server has accepted.
    const taken = new Map<string, string>();
    const answering = answerAll(
      world,
      () => isDone,
      async (runId, id, again) => {
        taken.set(id, runId);
        figures.add('answers accepted');
        if (taken.size % 3 === 0 && (await again())) figures.add('answers sent twice');
      },
    );
    const raging = world.rage(RUNS);
    for (const run of planned) await begin(run);
    const unended = async () =>
      (await listRuns(world.site))
        .filter(({ status }) => ['queued', 'running', 'waiting_user'].includes(status))
        .map(({ run_id: id, status }) => `${id} ${status}`);
    await expect.poll(unended, { timeout: 60_000 + RUNS * 4000, interval: 200 }).toEqual([]);
    world.leave();
    await raging;
    isDone = true;
    await answering;
    await Promise.all(living);
    expect(
      DEEDS.filter((deed) => figures.get(deed) === 0),
      'skipped actions',
    ).toEqual([]);

    const runs = [...planned, ...idle];
    const kept = await listRuns(world.site);
    expect(kept.map((run) => run.run_id).toSorted(), 'each was created once').toEqual(
      runs
        .filter(({ isDeleted }) => !isDeleted)
        .map(({ runId }) => runId)
        .toSorted(),
    );
    const traced = world.traced();
    expectNothingTwice(traced);
    expect(twice(answersTold(traced)), 'answers that engines were told twice').toEqual([]);
    expect(twice(readApproved(world)), 'approved commands that were run twice').toEqual([]);
    for (const run of runs) {
      const stored = kept.find((each) => each.run_id === run.runId);
      if (!stored) continue;
      expect(run.canceled ? ['canceled'] : ENDS, `${run.kind} ${run.runId}: ${stored.error?.message}`).toContain(
        outcomeOf(stored),
      );
      figures.add(`runs ${outcomeOf(stored)}`);
      expect([run.runId, run.lastSeq], 'nobody missed an event').toEqual([run.runId, stored.heads.fcmp_seq]);
      figures.add('events watched', run.lastSeq);
      await expectWhole(world, world, run, stored.status);
    }
    await withData(world.site, async ({ store }) => {
      for (const [id, runId] of taken) {
        if (!kept.some((run) => run.run_id === runId)) continue;
        const { state, resolution } = (await store.loadInteraction(id)) ?? {};
        expect([state, resolution?.idempotency_key], `the answer to ${id} was taken`).toEqual([
          'answered',
          `key-${id}`,
        ]);
        if (typeof resolution?.response === 'string') expect(resolution.response).toBe(answerTo(id));
      }
    });
    await expectProved(
      world,
      runs.filter(({ isDeleted }) => !isDeleted),
    );
    world.server.child.kill('SIGTERM');
    expect(await world.server.ended).toMatchObject({ code: 0 });
    expect(await parley(world.site, ['verify', '--all'])).toMatchObject({ code: 0, stderr: '' });
    expect(
      listMarked().filter(({ mark }) => runs.some(({ runId }) => mark?.startsWith(`${runId}/`))),
      'processes that were left',
    ).toEqual([]);
    figures.add('runs', runs.length);
  },
);
