// Whole runs of the rehearsal: the built program, the real store, the real orchestrator.
import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Json } from '../../src/kernel/json.js';
import type { RaspEvent } from '../../src/rasp/event.js';
import { RequestError } from '../../src/run/request-error.js';
import type { InteractionRecord, RunRecord } from '../../src/store/store.js';
import { createRoot, expectSound, journalOf, openBench, type Bench } from '../support/orchestrated.js';
import { REHEARSAL } from '../support/rehearsal.js';

const RUNTIME = { findProgram: async () => REHEARSAL };

async function withBench(work: (bench: Bench) => Promise<void>): Promise<void> {
  const bench = await openBench(createRoot(), { runtime: RUNTIME });
  try {
    await work(bench);
  } finally {
    await bench.close();
  }
}

async function play(bench: Bench, prompt: string, rest: object = {}): Promise<RunRecord> {
  const created = await bench.orchestrator.create({
    engine: 'rehearsal',
    prompt,
    execution_mode: 'interactive',
    permission: 'full',
    ...rest,
  });
  await bench.orchestrator.waitUntilIdle(created.run_id);
  return expectSound(bench, created.run_id);
}

async function pendingOf(bench: Bench, { run_id: id }: RunRecord): Promise<InteractionRecord> {
  const pending = await bench.data.store.loadPendingInteraction(id);
  expect(pending).not.toBeNull();
  return pending as InteractionRecord;
}

async function answer(bench: Bench, waiting: RunRecord, response: Json): Promise<RunRecord> {
  const { interaction_id: id } = await pendingOf(bench, waiting);
  await bench.orchestrator.reply(waiting.run_id, { interaction_id: id, response });
  await bench.orchestrator.waitUntilIdle(waiting.run_id);
  return expectSound(bench, waiting.run_id);
}

async function eventsOf(bench: Bench, run: RunRecord, type: string): Promise<RaspEvent[]> {
  const { rasp } = await journalOf(bench, run.run_id);
  return rasp.filter(({ event }) => event.type === type);
}

async function dataOf(bench: Bench, run: RunRecord, type: string): Promise<RaspEvent['data'][]> {
  return (await eventsOf(bench, run, type)).map(({ data }) => data);
}

// Everything that a turn left in its working directory and in its home.
function filesOf({ spec }: RunRecord): string[] {
  return [spec.cwd, spec.home ?? ''].flatMap((path) => readdirSync(path, { recursive: true, encoding: 'utf8' }));
}

describe('without directives', () => {
  test('a rehearsal asks, and the reply is taken up in a new process with the same session', async () => {
    await withBench(async (bench) => {
      const waiting = await play(bench, 'Tidy up the tests.');
      expect(waiting).toMatchObject({ status: 'waiting_user', attempt_number: 1 });
      expect((await pendingOf(bench, waiting)).question).toMatchObject({
        kind: 'choose_one',
        channel: 'native',
        options: [{}, {}, {}],
      });
      const handle = await bench.data.store.loadHandle(waiting.request_id);
      expect(await answer(bench, waiting, 'Quickly')).toMatchObject({
        status: 'succeeded',
        attempt_number: 2,
        result: { rehearsal: true, answer: 'Quickly' },
      });
      expect((await dataOf(bench, waiting, 'lifecycle.session.bound')).map((data) => data.session_id)).toEqual([
        handle?.handle_value,
        handle?.handle_value,
      ]);
      expect(new Set((await dataOf(bench, waiting, 'lifecycle.process.spawned')).map((data) => data.pid)).size).toBe(2);
      expect((await dataOf(bench, waiting, 'lifecycle.turn.started')).map((data) => data.resumed)).toEqual([
        false,
        true,
      ]);
      const said = await eventsOf(bench, waiting, 'agent.message.final');
      expect(said.filter(({ attempt_number: attempt }) => attempt === 2).map(({ data }) => data.text)[0]).toContain(
        'Quickly',
      );
      expect((await eventsOf(bench, waiting, 'agent.message.delta')).length).toBeGreaterThan(5);
      expect(await dataOf(bench, waiting, 'tool.call.completed')).toHaveLength(1);
    });
  });

  test('a rehearsal in auto mode asks nothing and is done', async () => {
    await withBench(async (bench) => {
      expect(await play(bench, 'Tidy up the tests.', { execution_mode: 'auto' })).toMatchObject({
        status: 'succeeded',
        attempt_number: 1,
        result: { rehearsal: true },
      });
    });
  });

  test('its question survives the end of everything', async () => {
    const root = createRoot();
    const first = await openBench(root, { runtime: RUNTIME });
    const waiting = await play(first, 'Tidy up the tests.');
    await first.close();
    const second = await openBench(root, { runtime: RUNTIME });
    expect(await answer(second, waiting, 'Not at all')).toMatchObject({
      status: 'succeeded',
      result: { answer: 'Not at all' },
    });
    await second.close();
  });
});

describe('an approval', () => {
  test('accepts a decision and nothing else, and then the run continues', async () => {
    await withBench(async (bench) => {
      const waiting = await play(bench, '[[approve rm -r build]][[answer Gone.]][[done {"ok":true}]]');
      const { interaction_id: id, question } = await pendingOf(bench, waiting);
      expect(question).toMatchObject({
        kind: 'approval',
        channel: 'native',
        prompt: expect.stringContaining('rm -r build'),
      });
      await expect(bench.orchestrator.reply(waiting.run_id, { interaction_id: id, response: 'yes' })).rejects.toSatisfy(
        (error) => error instanceof RequestError && error.code === 'APPROVAL_INVALID',
      );
      expect(await answer(bench, waiting, { decision: 'approve' })).toMatchObject({
        status: 'succeeded',
        attempt_number: 2,
        result: { ok: true },
      });
      expect(await dataOf(bench, waiting, 'tool.call.completed')).toMatchObject([
        { kind: 'command', status: 'completed' },
      ]);
    });
  });

  test('that was declined continues without the command, and each option is an accepted reply', async () => {
    await withBench(async (bench) => {
      const waiting = await play(bench, '[[approve rm -r build]][[done 1]]');
      const { question } = await pendingOf(bench, waiting);
      const { options } = question as unknown as { options: { label: string; value: Json }[] };
      const decline = options.find(({ label }) => label === 'Decline')?.value ?? null;
      expect(await answer(bench, waiting, decline)).toMatchObject({ status: 'succeeded', result: 1 });
      expect(await dataOf(bench, waiting, 'tool.call.completed')).toMatchObject([{ status: 'declined' }]);
      for (const { value } of options) {
        const again = await play(bench, '[[approve rm -r build]]');
        expect(await answer(bench, again, value)).toMatchObject({ status: 'waiting_user', attempt_number: 2 });
      }
    });
  });
});

describe('directives', () => {
  test.each([
    ['[[answer Fine.]]', 'auto', 'succeeded', null],
    ['[[answer Fine.]]', 'interactive', 'waiting_user', null],
    ['[[answer Fine.]][[done 7]]', 'interactive', 'succeeded', null],
    ['[[ask Which?|a|b]]', 'interactive', 'waiting_user', null],
    ['[[ask Which?|a|b]]', 'auto', 'failed', 'AUTO_MODE_CANNOT_ASK'],
    ['[[approve ls]]', 'auto', 'failed', 'AUTO_MODE_CANNOT_ASK'],
    ['[[tool ls]][[file a.txt]]', 'auto', 'succeeded', null],
    ['[[events 2000 500]]', 'auto', 'succeeded', null],
    ['[[utf8]][[stderr 20]][[orphan]]', 'auto', 'succeeded', null],
    ['[[sleep 50]]', 'auto', 'succeeded', null],
    ['[[fail]]', 'interactive', 'failed', 'ENGINE_TURN_FAILED'],
    ['[[crash]]', 'interactive', 'failed', 'ENGINE_EXITED'],
    ['[[exit0]]', 'interactive', 'failed', 'COMPLETION_UNKNOWN'],
    ['[[nosession]][[ask Which?]]', 'interactive', 'failed', 'SESSION_RESUME_FAILED'],
    ['[[nosession]][[done 1]]', 'auto', 'succeeded', null],
    ['[[refuse]][[othersession]][[done 1]]', 'auto', 'succeeded', null],
  ])('%s in %s mode ends as %s %s', async (prompt, mode, status, code) => {
    await withBench(async (bench) => {
      const ended = await play(bench, prompt, { execution_mode: mode });
      expect([ended.status, ended.error?.code ?? null]).toEqual([status, code]);
    });
  });

  test.each(['[[ask Which?]][[othersession]]', '[[ask Which?]][[refuse]]', '[[ask Which?]][[nosession]]'])(
    'a resume that comes back wrong fails and keeps the stored session: %s',
    async (prompt) => {
      await withBench(async (bench) => {
        const waiting = await play(bench, prompt);
        const handle = await bench.data.store.loadHandle(waiting.request_id);
        expect(await answer(bench, waiting, 'x')).toMatchObject({
          status: 'failed',
          error: { code: 'SESSION_RESUME_FAILED' },
        });
        expect(await bench.data.store.loadHandle(waiting.request_id)).toEqual(handle);
      });
    },
  );

  test('[[hang]] is canceled, and nothing of it is left', async () => {
    await withBench(async (bench) => {
      const { run_id: id } = await bench.orchestrator.create({
        engine: 'rehearsal',
        prompt: '[[answer here]][[hang]]',
        execution_mode: 'interactive',
        permission: 'full',
      });
      const said = async () =>
        (await journalOf(bench, id)).rasp.some(({ event }) => event.type === 'agent.message.final');
      while (!(await said())) await new Promise((resolve) => setImmediate(resolve));
      expect((await bench.orchestrator.cancel(id)).status).toBe('canceled');
      await expectSound(bench, id);
    });
  });

  test('nothing is executed and no file is written, not even after an approval', async () => {
    await withBench(async (bench) => {
      const waiting = await play(
        bench,
        '[[tool touch a.txt]][[file b.txt]][[approve touch c.txt]][[tool touch d.txt; sleep 60 &]][[done 1]]',
      );
      expect(await answer(bench, waiting, { decision: 'approve' })).toMatchObject({ status: 'succeeded' });
      expect(await dataOf(bench, waiting, 'tool.call.completed')).toHaveLength(4);
      const handle = await bench.data.store.loadHandle(waiting.request_id);
      expect(filesOf(waiting).toSorted()).toEqual([
        '.parley-rehearsal',
        '.parley-rehearsal/sessions',
        `.parley-rehearsal/sessions/${handle?.handle_value}.json`,
      ]);
    });
  });
});
