// A turn that prints nothing: shown and reported after a while, ended by the limit that applies, never while its tool
// may work.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import type { JsonObject } from '../../src/kernel/json.js';
import { viewRun } from '../../src/journal/run-view.js';
import type { OrchestratorDeps } from '../../src/journal/deps.js';
import type { RunRecord } from '../../src/store/store.js';
import { createRoot, expectSound, journalOf, openBench, type Bench } from '../support/orchestrated.js';
import { SimulatedTime } from '../support/simulated-timers.js';

const [IDLE_MS, TOOL_MS, NOTICE_MS] = [1800_000, 14_400_000, 1800_000];
const HOOKS = [
  { name: 'all', events: ['silent', 'failed'] },
  { name: 'ends', events: ['failed'] },
] as const;

interface Scene {
  readonly bench: Bench;
  readonly time: SimulatedTime;
  readonly gate: string;
  run(engine: string, prompt: string, options?: JsonObject): Promise<RunRecord>;
  view(run: RunRecord): Promise<ReturnType<typeof viewRun>>;
  data(run: RunRecord, type: string): Promise<JsonObject[]>;
  ended(run: RunRecord): Promise<RunRecord>;
}

async function withScene(work: (scene: Scene) => Promise<void>, deps: Partial<OrchestratorDeps> = {}): Promise<void> {
  const [root, time] = [createRoot(), new SimulatedTime()];
  const bench = await openBench(root, {
    clock: time.clock,
    timers: time.createTimers(),
    deps: { hooks: HOOKS, ...deps },
  });
  const load = async ({ run_id: id }: RunRecord): Promise<RunRecord> =>
    (await bench.data.store.loadRun(id)) as RunRecord;
  await work({
    bench,
    time,
    gate: join(root, 'gate'),
    run: (engine, prompt, options = {}) =>
      bench.orchestrator.create({ engine, prompt, permission: 'full', runtime_options: options }),
    view: async (run) => viewRun(await load(run), null, time.now),
    data: async ({ run_id: id }, type) =>
      (await journalOf(bench, id)).rasp
        .filter(({ event }) => event.type === type)
        .map(({ data }) => data as JsonObject),
    ended: async ({ run_id: id }) => {
      await bench.orchestrator.waitUntilIdle(id);
      return expectSound(bench, id);
    },
  });
  await bench.close();
}

const waits = (gate: string, engine = 'codex'): string =>
  `[[${engine === 'codex-app-server' ? 'run' : 'tool'} until test -e ${gate}; do sleep 0.02; done]]`;

test.each(['codex', 'gemini', 'codex-app-server'])(
  '%s: a silent tool call outlives the idle limit, is reported once, and the turn continues',
  async (engine) => {
    await withScene(async ({ bench, time, gate, run, view, data, ended }) => {
      const created = await run(engine, `${waits(gate, engine)}[[done 1]]`);
      await time.armed(TOOL_MS);
      expect(await view(created)).toMatchObject({ status: 'running', silent_since: null });
      time.advance(NOTICE_MS);
      await vi.waitFor(async () => expect(await data(created, 'lifecycle.turn.silent')).toHaveLength(1), {
        timeout: 20_000,
      });
      expect(await data(created, 'lifecycle.turn.silent')).toEqual([
        { noticed_at: expect.any(String), silent_sec: 1800, tool_running: true },
      ]);
      const { rasp } = await journalOf(bench, created.run_id);
      const since = rasp.at(-2)?.ts;
      expect(rasp.at(-1)?.ts).toBe(since);
      expect(await view(created)).toMatchObject({ status: 'running', silent_since: since });
      const delivery = await bench.data.store.nextDelivery(time.now + 1);
      expect(delivery).toMatchObject({
        hook: 'all',
        type: 'run.silent',
        payload: { type: 'run.silent', run_id: created.run_id, status: 'running', silent_since: since, error: null },
      });
      expect(await bench.data.store.countDeliveries()).toMatchObject({ pending: 1 });
      // Hours later it is still running, and nothing is reported again.
      time.advance(2 * NOTICE_MS);
      expect((await view(created)).silent_since).toBe(since);
      writeFileSync(gate, '');
      expect(await ended(created)).toMatchObject({ status: 'succeeded' });
      expect(await data(created, 'lifecycle.turn.silent')).toHaveLength(1);
      expect((await view(created)).silent_since).toBeNull();
    });
  },
);

test('codex-app-server: an approved command counts as running in the turn after the approval', async () => {
  await withScene(async ({ bench, time, gate, ended }) => {
    const request = {
      engine: 'codex-app-server',
      prompt: `[[approve until test -e ${gate}; do sleep 0.02; done]][[done 1]]`,
      execution_mode: 'interactive',
    } as const;
    const { run_id: id } = await bench.orchestrator.create(request);
    const waiting = await bench.orchestrator.waitUntilIdle(id);
    const pending = await bench.data.store.loadPendingInteraction(id);
    await bench.orchestrator.reply(id, {
      interaction_id: pending?.interaction_id ?? '',
      response: { decision: 'approve' },
    });
    await time.armed(TOOL_MS);
    time.advance(2 * IDLE_MS);
    writeFileSync(gate, '');
    expect(await ended(waiting)).toMatchObject({ status: 'succeeded' });
  });
});

test('a tool call silent for tool_timeout_sec ends the turn, and the message says how to allow more', async () => {
  await withScene(async ({ time, gate, run, ended }) => {
    const created = await run('codex', waits(gate));
    await time.armed(TOOL_MS);
    time.advance(TOOL_MS);
    expect(await ended(created)).toMatchObject({
      status: 'failed',
      error: {
        code: 'TOOL_CALL_TIMEOUT',
        message:
          'Stopped: a tool call ran for 4 hours without output (tool_timeout_sec). Allow more: -o ' +
          'tool_timeout_sec=57600.',
      },
    });
  });
});

test('without a tool call the idle limit ends the turn, is named, and is not reported as a silence first', async () => {
  await withScene(async ({ time, run, data, ended }) => {
    const created = await run('codex', '[[answer First.]][[hang]]');
    await vi.waitFor(async () => expect(await data(created, 'agent.message.final')).toHaveLength(1), {
      timeout: 20_000,
    });
    await time.armed(IDLE_MS);
    time.advance(IDLE_MS);
    expect(await ended(created)).toMatchObject({
      status: 'failed',
      error: {
        code: 'ENGINE_IDLE_TIMEOUT',
        message: 'Stopped after 30 minutes without output (idle_timeout_sec). Allow more: -o idle_timeout_sec=7200.',
      },
    });
    expect(await data(created, 'lifecycle.turn.silent')).toEqual([]);
  });
});

test('a turn has no limit by default, and one that is set is named when it is reached', async () => {
  await withScene(async ({ time, gate, run, ended }) => {
    const created = await run('codex', waits(gate), { turn_timeout_sec: 5400 });
    await time.armed(5_400_000);
    time.advance(5_400_000);
    expect((await ended(created)).error).toMatchObject({
      code: 'TURN_TIMEOUT',
      message:
        'Stopped: the turn took longer than 90 minutes (turn_timeout_sec). Allow more: -o turn_timeout_sec=21600, ' +
        'or null for no limit.',
    });
  });
});

test('the limits in force are recorded at creation: those of the run, else the settings, else defaults', async () => {
  await withScene(async ({ run, ended }) => {
    const plain = await run('codex', '[[done 1]]');
    expect(plain.spec.runtime_options).toMatchObject({
      turn_timeout_sec: null,
      idle_timeout_sec: 1800,
      tool_timeout_sec: 14_400,
      silence_notice_sec: 1800,
    });
    await ended(plain);
  });
  const limits = { turn_timeout_sec: 60, idle_timeout_sec: 61, tool_timeout_sec: 62, silence_notice_sec: 63 };
  await withScene(
    async ({ run, ended }) => {
      const set = await run('codex', '[[done 1]]', { turn_timeout_sec: null, tool_timeout_sec: 7 });
      expect(set.spec.runtime_options).toMatchObject({
        turn_timeout_sec: null,
        idle_timeout_sec: 61,
        tool_timeout_sec: 7,
        silence_notice_sec: 63,
      });
      await ended(set);
    },
    { runDefaults: () => ({ mode: null, permission: 'workspace-write', model: {}, limits }) },
  );
});

test.each([
  ['idle_timeout_sec', null],
  ['tool_timeout_sec', 0],
  ['turn_timeout_sec', -1],
  ['silence_notice_sec', 'never'],
])('%s cannot be %j', async (name, value) => {
  await withScene(async ({ run }) => {
    await expect(run('codex', 'x', { [name]: value })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(name),
    });
  });
});
