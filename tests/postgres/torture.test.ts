// Three servers on one database. Runs ask, wait with a process, time out, are canceled and deleted, while the servers
// are killed, stopped and disconnected at random, seeded. Every run ends, nothing is run or delivered twice, no host
// that lost a run writes to it, and watchers miss nothing. The engines themselves record what they did.
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { listMarked } from '../../src/process/process-table.js';
import { expectNothingTwice, twice } from '../support/engine-trace.js';
import { withHosts } from '../support/hosts.js';
import { seededRandom } from '../support/seeded-random.js';
import {
  answerAll,
  answersTold,
  expectGone,
  expectProved,
  expectWhole,
  live,
  planRuns,
  readApproved,
} from '../support/tortured-runs.js';
import { World } from '../support/world.js';

const RUNS = Number(process.env['PARLEY_HOSTS_RUNS'] ?? 9);
const SEED = Number(process.env['PARLEY_SEED'] ?? 20261116);
const LEASE_SEC = 2;
// Far longer than any host is away: with local files, no run may be given up.
const GONE_SEC = 3600;

const UNENDED = `SELECT run_id, request_id, engine, status, attempt_number, epoch, cancel_requested_json,
  reserved_by, reserved_until, owner, resident, site,
  (
    SELECT json_agg(json_build_object(
      'host', host_id, 'name', name, 'site', site, 'alive', lease_until > clock_timestamp()
    ))
    FROM parley.hosts
    WHERE host_id IN (owner, resident, reserved_by) OR hosts.site = runs.site
  ) AS hosts,
  (
    SELECT json_agg(json_build_object(
      'state', state, 'due', to_timestamp(due_at / 1000.0), 'decides', decides
    ))
    FROM parley.interactions
    WHERE interactions.run_id = runs.run_id
  ) AS questions,
  clock_timestamp() AS now
  FROM parley.runs
  WHERE status IN ('queued', 'running', 'waiting_user')`;

interface Row {
  readonly run_id: string;
  readonly status: string;
  readonly error_json: string | null;
  readonly fcmp_seq: string;
}

// The outcome as one word.
const outcomeOf = ({ status, error_json: error }: Row) =>
  status === 'failed' ? (JSON.parse(error ?? '{}') as { code?: string; message?: string }) : { code: status };

test.each(['shared', 'host'] as const)(
  `${RUNS} runs on three killed, stopped and isolated hosts end (files: %s, seed ${SEED})`,
  async (files) => {
    const hosts = await withHosts({ files, leaseSec: LEASE_SEC, goneSec: GONE_SEC, slots: 2 });
    const world = new World(hosts, LEASE_SEC, seededRandom(SEED * 31 + files.length));
    await world.begin();
    let isDone = false;
    const raging = world.rage(RUNS);
    const runs = planRuns(RUNS, SEED, seededRandom(SEED), hosts);
    const answering = answerAll(world, () => isDone);
    const living: Promise<void>[] = [];
    for (const run of runs) {
      run.runId = (await world.somewhere((client) => client.create(run.request))).run_id;
      living.push(live(world, run));
    }
    const lives = Promise.all(living);
    await expect
      .poll(() => hosts.database.query(UNENDED), { timeout: 60_000 + RUNS * 4000, interval: 200 })
      .toEqual([]);
    await world.heal();
    await raging;
    isDone = true;
    await answering;
    await lives;
    const rows = await hosts.database.query<Row>('SELECT run_id, status, error_json, fcmp_seq FROM parley.runs');
    // Each was created once.
    expect(rows.map((row) => row.run_id).toSorted()).toEqual(
      runs
        .filter(({ isDeleted }) => !isDeleted)
        .map(({ runId }) => runId)
        .toSorted(),
    );
    const traced = hosts.traced();
    expectNothingTwice(traced);
    expect(twice(answersTold(traced)), 'answers that engines were told twice').toEqual([]);
    expect(new Set(traced.map(({ runId }) => runId)).size).toBeGreaterThan(RUNS / 2);
    expect(twice(readApproved(hosts)), 'approved commands that were run twice').toEqual([]);
    const ends: string[] = [];
    for (const run of runs) {
      const row = rows.find((each) => each.run_id === run.runId);
      if (!row) {
        await expectGone(world, hosts, run);
        continue;
      }
      const { code, message } = { message: '', ...outcomeOf(row) };
      // Successful, lost with its host, or as requested.
      expect(
        run.canceled ? ['canceled'] : ['succeeded', 'ORCHESTRATOR_RESTART_INTERRUPTED'],
        `${run.kind} ${run.runId}: ${message}`,
      ).toContain(code);
      // No watcher missed anything.
      expect([run.runId, run.lastSeq]).toEqual([run.runId, Number(row.fcmp_seq)]);
      await expectWhole(world, hosts, run, row.status);
      ends.push(code ?? '');
    }
    // Rows of an epoch never come after those of a later one: a host that lost a run wrote nothing more.
    expect(
      await hosts.database.query(
        `SELECT run_id, protocol, seq_from
         FROM (
           SELECT run_id, protocol, seq_from, epoch,
             max(epoch) OVER (PARTITION BY run_id, protocol ORDER BY seq_from) AS latest
           FROM parley.segments
         ) AS each
         WHERE epoch < latest`,
      ),
    ).toEqual([]);
    // No question is left that should have been decided.
    expect(
      await hosts.database.query(`SELECT interaction_id FROM parley.interactions WHERE state = 'pending' AND decides`),
    ).toEqual([]);
    await expect
      .poll(() => listMarked().filter(({ mark }) => runs.some(({ runId }) => mark?.startsWith(`${runId}/`))), {
        timeout: 20_000,
      })
      .toEqual([]);
    const counts = [...new Set(ends)].map((end) => `${ends.filter((each) => each === end).length} ${end}`);
    console.log(
      `${RUNS} runs, files ${files}: ${counts.join(', ')}, ${RUNS - ends.length} deleted; ${traced.length} ` +
        `processes of engines; ${world.deeds.length} deeds: ${world.deeds.join(', ')}`,
    );
    await expectProved(
      world,
      runs.filter(({ isDeleted }) => !isDeleted),
    );
    // On any host, even if it was away when they were deleted.
    await expect
      .poll(
        () =>
          runs
            .filter(({ isDeleted }) => isDeleted)
            .flatMap(({ kind, runId }) =>
              hosts
                .foldersOf(runId)
                .map((folder) => `${kind} ${folder}: ${readdirSync(folder, { recursive: true }).join(' ')}`),
            ),
        { timeout: 20_000 },
      )
      .toEqual([]);
    await world.end();
  },
  180_000 + RUNS * 7000,
);
