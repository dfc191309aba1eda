// sessions.sticky on the app-server of the real Codex: it can resume and is marked so; if the probe reports that it
// cannot, its run waits in its process and nowhere else.
import { expect, test, vi } from 'vitest';
import { processesOf } from '../support/orchestrated.js';
import { ASKS, dataOf, linesIn, openResidents, spawnedIn } from './real-resident.js';

const SIDE = 'echo done >> side.txt';
const PROMPT = `[[approve ${SIDE}]] [[done 7]]`;
const PARKS = { residents: { parkAfterMs: 0, max: 0 } };

test('real Codex lists resume in its help: its run is marked resumable and continues in another process', async () => {
  const bench = await openResidents({ sticky: {}, settings: PARKS });
  const run = await bench.play(PROMPT, ASKS);
  expect(dataOf(await bench.events(run.run_id), 'lifecycle.run.created')).toMatchObject([
    { interactive_profile: { kind: 'resumable' } },
  ]);
  await vi.waitFor(() => expect(processesOf(run.run_id)).toEqual([]), { timeout: 20_000 });
  expect(await bench.reply(run.run_id, { decision: 'approve' })).toMatchObject({ status: 'succeeded', result: 7 });
  expect(linesIn(bench.cwd, 'side.txt')).toEqual(['done']);
});

test('one that waits in its process is answered there, past every limit of others', async () => {
  const bench = await openResidents({ sticky: { resumes: false }, settings: PARKS });
  const run = await bench.play(PROMPT, ASKS);
  expect(dataOf(await bench.events(run.run_id), 'lifecycle.run.created')).toMatchObject([
    { interactive_profile: { kind: 'sticky_process' } },
  ]);
  const other = await bench.play(PROMPT, ASKS);
  expect(processesOf(run.run_id)).not.toEqual([]);
  expect(await bench.reply(run.run_id, { decision: 'approve' })).toMatchObject({ status: 'succeeded', result: 7 });
  expect(spawnedIn(await bench.events(run.run_id))).toHaveLength(1);
  await bench.orchestrator.cancel(other.run_id);
});

test('the run fails when its process exits or its time expires', async () => {
  const bench = await openResidents({ sticky: { resumes: false }, settings: PARKS });
  const lost = await bench.play(PROMPT, ASKS);
  for (const pid of processesOf(lost.run_id)) process.kill(pid, 'SIGKILL');
  const late = await bench.play(PROMPT, { ...ASKS, runtime_options: { session_timeout_sec: 1 } });
  for (const [runId, code] of [
    [lost.run_id, 'INTERACTION_PROCESS_LOST'],
    [late.run_id, 'INTERACTION_WAIT_TIMEOUT'],
  ] as const) {
    await vi.waitFor(async () => expect((await bench.data.store.loadRun(runId))?.status).toBe('failed'), {
      timeout: 20_000,
    });
    expect(await bench.waitUntilIdle(runId)).toMatchObject({ error: { code } });
    expect(processesOf(runId)).toEqual([]);
  }
  expect(linesIn(bench.cwd, 'side.txt')).toEqual([]);
});
