// The ends of runs of a resident engine in case of failures: a process that dies, limits, cancels, a restart. No
// process is left, and no byte is lost.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, test, vi } from 'vitest';
import { startResident } from '../../../src/app-server/start-resident.js';
import { systemClock } from '../../../src/kernel/clock.js';
import { systemTimers } from '../../../src/process/timers.js';
import { createRoot, expectSound, processesOf } from '../../support/orchestrated.js';
import { onlyLong, SimulatedTimers } from '../../support/simulated-timers.js';
import { dataOf, ENGINE, openResidentBench, withBench } from '../../support/resident-bench.js';

test.each([
  { prompt: '[[say One.]] [[exit 3]]', code: 'ENGINE_EXITED', message: 'code 3' },
  { prompt: '[[say One.]] [[exit 0]]', code: 'COMPLETION_UNKNOWN', message: 'NO_TURN_COMPLETED' },
  { prompt: '[[say One.]] [[kill]]', code: 'ENGINE_EXITED', message: 'SIGKILL' },
  { prompt: '[[say One.]] [[fail the model is gone]]', code: 'ENGINE_TURN_FAILED', message: 'the model is gone' },
])('$prompt fails with $code', async ({ prompt, code, message }) =>
  withBench(async (bench) => {
    expect(await bench.play(prompt)).toMatchObject({
      status: 'failed',
      error: { code, message: expect.stringContaining(message) },
    });
  }),
);

test('a turn that hangs is ended by either limit', async () =>
  withBench(async (bench) => {
    expect(await bench.play('[[hang]]', { runtime_options: { turn_timeout_sec: 1 } })).toMatchObject({
      status: 'failed',
      error: { code: 'TURN_TIMEOUT' },
    });
    expect(await bench.play('[[hang]]', { runtime_options: { idle_timeout_sec: 1 } })).toMatchObject({
      status: 'failed',
      error: { code: 'ENGINE_IDLE_TIMEOUT' },
    });
  }));

test('a person may take longer than both limits of a turn', async () => {
  const simulated = new SimulatedTimers();
  await withBench(
    async (bench) => {
      const asked = await bench.play('[[approve true]] [[done 1]]', {
        runtime_options: { turn_timeout_sec: 60, idle_timeout_sec: 60 },
      });
      simulated.advance(61_000);
      expect(processesOf(asked.run_id)).not.toEqual([]);
      expect((await bench.reply(asked, { decision: 'approve' })).status).toBe('succeeded');
    },
    { timers: onlyLong(simulated) },
  );
});

test('a run that is canceled while it waits ends its process, and what that has said since is kept', async () =>
  withBench(async (bench) => {
    // The second of two concurrent requests comes after the end of the turn.
    const run = await bench.play('[[parallel echo a | echo b]]');
    expect(processesOf(run.run_id)).not.toEqual([]);
    await bench.orchestrator.cancel(run.run_id);
    expect((await bench.waitUntilIdle(run)).status).toBe('canceled');
    const events = await bench.events(run);
    expect(dataOf(events, 'lifecycle.process.ended')).toHaveLength(1);
    expect(events.slice(-3).map(({ event }) => event.type)).toEqual([
      'lifecycle.engine.progress',
      'lifecycle.process.ended',
      'lifecycle.state.changed',
    ]);
  }));

test.each(['[[hang]]', '[[work 60000]]', '[[say One.]] [[noise 2000]] [[hang]]'])(
  '%s is canceled: the run ends, and nothing of it is left',
  async (prompt) =>
    withBench(async (bench) => {
      const { run_id: runId } = await bench.orchestrator.create({
        engine: ENGINE,
        prompt,
        execution_mode: 'interactive',
      });
      await vi.waitFor(
        async () =>
          expect(
            dataOf(await bench.events({ run_id: runId }), 'lifecycle.engine.progress').map(({ phase }) => phase),
          ).toContain('turn/started'),
        { timeout: 20_000 },
      );
      expect((await bench.orchestrator.cancel(runId)).status).toBe('canceled');
      await bench.waitUntilIdle({ run_id: runId });
    }),
);

test('a process that dies while its run waits takes nothing with it', async () =>
  withBench(async (bench) => {
    const run = await bench.play('[[approve echo once]] [[done 1]]');
    for (const pid of processesOf(run.run_id)) process.kill(pid, 'SIGKILL');
    await vi.waitFor(() => expect(processesOf(run.run_id)).toEqual([]), { timeout: 20_000 });
    expect(bench.failures).toEqual([]);
    expect((await bench.reply(run, { decision: 'approve' })).status).toBe('succeeded');
    expect(bench.commands()).toHaveLength(1);
  }));

test('a process that no longer waits for the answer is replaced by one that gets it', async () => {
  let started = 0;
  let hasForgotten = false;
  const bench = await openResidentBench({
    runtime: {
      startResident: async (_engine, start) => {
        const resident = await startResident(start, {
          user: { home: start.folder, env: { PATH: process.env['PATH'] } },
          platform: 'none',
          pid: process.pid,
          clock: systemClock,
          timers: systemTimers,
        });
        const waitsFor = resident.waitsFor.bind(resident);
        const isFirst = (started += 1) === 1;
        resident.waitsFor = (request) => !(isFirst && hasForgotten) && waitsFor(request);
        return resident;
      },
    },
  });
  const run = await bench.play('[[approve echo once]] [[done 1]]');
  hasForgotten = true;
  expect((await bench.reply(run, { decision: 'approve' })).status).toBe('succeeded');
  expect(started).toBe(2);
  expect(bench.commands()).toHaveLength(1);
  await bench.close();
});

test('a question the engine resolved itself frees its process; a new process gets the answer', async () =>
  withBench(async (bench) => {
    const run = await bench.play('[[fickle 300]]');
    expect((await bench.pending(run)).question['prompt']).toBe('Which?');
    await vi.waitFor(() => expect(processesOf(run.run_id)).toEqual([]), { timeout: 20_000 });
    // The end of its turn is in the log at which the next one begins.
    const after = await bench.reply(run, 'red [[done 3]]');
    expect(after).toMatchObject({ status: 'succeeded', result: 3 });
    expect(await bench.pids(run)).toHaveLength(2);
    expect(dataOf(await bench.events(run), 'agent.message.final').map(({ text }) => text)).toContain(
      'I decided myself.',
    );
  }));

test.each(['[[oddcall]]', '[[hugeform 17000000]]'])(
  '%s asks nobody: it is refused, and the turn continues',
  async (prompt) =>
    withBench(async (bench) => {
      expect(await bench.play(`${prompt} [[done 4]]`)).toMatchObject({ status: 'succeeded', result: 4 });
      expect(
        dataOf(
          await bench.events({ run_id: (await bench.data.store.listRuns({ limit: 1 }))[0]?.run_id ?? '' }),
          'interaction.requested',
        ),
      ).toEqual([]);
    }),
);

test('a failed start is reported with its output', async () =>
  withBench(
    async (bench) => {
      const missing = await bench.play('x');
      expect(missing).toMatchObject({ status: 'failed', error: { code: 'ENGINE_NOT_FOUND' } });
    },
    { runtime: { findProgram: async () => ['/nowhere/codex'] } },
  ));

test('a missing session cannot be continued', async () => {
  const root = createRoot();
  let env: Record<string, string> = {};
  const bench = await openResidentBench({
    root,
    settings: { residents: { parkAfterMs: 0, max: 1 } },
    runtime: { environment: () => ({ PATH: process.env['PATH'] ?? '', HOME: root, ...env }) },
  });
  const run = await bench.play('[[approve true]]');
  await vi.waitFor(() => expect(processesOf(run.run_id)).toEqual([]), { timeout: 20_000 });
  env = { STAND_IN_RESUME: 'no' };
  expect(await bench.reply(run, { decision: 'approve' })).toMatchObject({
    status: 'failed',
    error: { code: 'SESSION_RESUME_FAILED', message: expect.stringContaining('no rollout found') },
  });
  await bench.close();
});

describe('after a restart', () => {
  test('a stop ends resident processes; their questions can be answered after the next start', async () => {
    const root = createRoot();
    const first = await openResidentBench({ root });
    const run = await first.play('[[approve echo once]] [[done 1]]');
    expect(processesOf(run.run_id)).not.toEqual([]);
    await first.close();
    expect(processesOf(run.run_id)).toEqual([]);
    const second = await openResidentBench({ root });
    expect((await second.reply(run, { decision: 'approve' })).status).toBe('succeeded');
    expect(second.commands()).toHaveLength(1);
    await second.close();
  });

  test.each([
    { decision: 'approve', runs: 1 },
    { decision: 'decline', runs: 0 },
  ])('that follows SIGKILL of everything, $decision is applied as if nothing had been', async ({ decision, runs }) => {
    const root = createRoot();
    const runId = await playAndKill(root, '[[approve echo once]] [[done 1]]', 'waiting_user');
    const bench = await openResidentBench({ root });
    const waiting = await expectSound(bench, runId);
    expect(waiting.status).toBe('waiting_user');
    expect(processesOf(runId)).toEqual([]);
    expect((await bench.reply(waiting, { decision })).status).toBe('succeeded');
    expect(bench.commands()).toHaveLength(runs);
    await bench.close();
  });

  test('an interrupted turn fails with all its output, and its session can be continued', async () => {
    const root = createRoot();
    const runId = await playAndKill(root, '[[say One.]] [[run echo first]] [[hang]]', 'hangs');
    const bench = await openResidentBench({ root });
    const failed = await expectSound(bench, runId);
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' } });
    expect(dataOf(await bench.events(failed), 'agent.message.final')).toMatchObject([{ text: 'One.' }]);
    const next = await bench.orchestrator.continueFrom(runId, { prompt: 'Go on. [[done 5]]' });
    expect(await bench.waitUntilIdle(next)).toMatchObject({ status: 'succeeded', result: 5 });
    await bench.close();
  });
});

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended with its owner.
  }
}

// A separate process runs a run up to a point and is then killed, with its engine.
async function playAndKill(root: string, prompt: string, until: 'waiting_user' | 'hangs'): Promise<string> {
  const child = spawn(
    process.execPath,
    [new URL('../../support/resident-child.mjs', import.meta.url).pathname, root, prompt, until],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const runId = line.toString('utf8').trim();
  const engines = processesOf(runId);
  expect(engines).not.toEqual([]);
  child.kill('SIGKILL');
  await once(child, 'exit');
  for (const pid of engines) killIfThere(pid);
  await vi.waitFor(() => expect(processesOf(runId)).toEqual([]), { timeout: 20_000 });
  return runId;
}
