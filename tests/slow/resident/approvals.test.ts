// Approvals of a resident engine: they become interactions of the run, a decision reaches the process that asked while
// it lives, and a later one is applied once, to the same action only.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import type { Json } from '../../../src/kernel/json.js';
import type { RaspEvent } from '../../../src/rasp/event.js';
import type { RunAppend } from '../../../src/store/store.js';
import { Gate } from '../../support/gate.js';
import { journalOf, processesOf } from '../../support/orchestrated.js';
import { ADA, dataOf, gone, openResidentBench, withBench } from '../../support/resident-bench.js';

const COMMAND = 'echo done >> made.txt';

test.each([
  { decision: 'approve', runs: 1 },
  { decision: 'approve_for_session', runs: 2 },
  { decision: 'decline', runs: 0 },
])('while the process lives, $decision goes to it', async ({ decision, runs }) =>
  withBench(async (bench) => {
    const asked = await bench.play(
      `[[say Hello.]] [[approve ${COMMAND}]] [[approve ${COMMAND}]] [[say I go on.]] [[done 7]]`,
    );
    expect(asked.status).toBe('waiting_user');
    const { question } = await bench.pending(asked);
    expect(question).toMatchObject({
      kind: 'approval',
      channel: 'native',
      action: { kind: 'command', cwd: asked.spec.cwd },
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(String(question.prompt)).toContain(COMMAND);
    // The same in the journal, and in the conversation.
    const { rasp, fcmp } = await journalOf(bench, asked.run_id);
    expect(dataOf(rasp, 'interaction.requested')).toMatchObject([{ action: question.action, digest: question.digest }]);
    expect(JSON.parse(fcmp.findLast((line) => line.includes('user.input.required')) ?? '')).toMatchObject({
      data: { action: question.action, digest: question.digest },
    });
    const pids = processesOf(asked.run_id);
    expect(pids.length).toBeGreaterThan(0);
    const next = await bench.reply(asked, { decision });
    if (decision === 'approve_for_session') expect(next).toMatchObject({ status: 'succeeded', result: 7 });
    else {
      expect(next.status).toBe('waiting_user');
      expect(processesOf(asked.run_id)).toEqual(pids);
      expect(await bench.reply(asked, { decision: 'decline' })).toMatchObject({ status: 'succeeded', result: 7 });
    }
    expect(bench.commands()).toHaveLength(runs);
    expect(await bench.pids(asked)).toHaveLength(1);
    expect(dataOf(await bench.events(asked), 'interaction.approval.applied')[0]).toMatchObject({
      decision,
      digest: question.digest,
      actor: ADA,
    });
  }),
);

test('a cancel stops the turn: nothing runs, the person replies next, the conversation continues', async () =>
  withBench(async (bench) => {
    const asked = await bench.play(`[[approve ${COMMAND}]]`);
    const stopped = await bench.reply(asked, { decision: 'cancel' });
    expect(stopped.status).toBe('waiting_user');
    expect((await bench.pending(stopped)).question).toMatchObject({ kind: 'open_text', channel: 'conversation' });
    expect(bench.commands()).toEqual([]);
    expect(await bench.reply(asked, 'Then this. [[done "ok"]]')).toMatchObject({ status: 'succeeded', result: 'ok' });
    expect(await bench.pids(asked)).toHaveLength(1);
  }));

test('a cancel of a request without a cancel answer interrupts the turn', async () =>
  withBench(async (bench) => {
    const asked = await bench.play('[[permissions]] [[hang]]');
    expect((await bench.pending(asked)).question).toMatchObject({ kind: 'approval', action: { kind: 'permissions' } });
    const stopped = await bench.reply(asked, { decision: 'cancel' });
    expect((await bench.pending(stopped)).question).toMatchObject({ channel: 'conversation' });
  }));

const BOGUS: readonly Json[] = [
  null,
  'approve',
  true,
  [],
  {},
  { decision: true },
  { decision: 'APPROVE' },
  { decision: 'accept' },
  { decision: ['approve'] },
  { note: 'yes' },
];

test.each(BOGUS.map((bogus) => ({ bogus })))(
  '$bogus is no decision: it is refused before it reaches the engine, and the question stays',
  async ({ bogus }) =>
    withBench(async (bench) => {
      const asked = await bench.play(`[[approve ${COMMAND}]]`);
      const { interaction_id: id } = await bench.pending(asked);
      await expect(
        bench.orchestrator.reply(asked.run_id, { interaction_id: id, response: bogus }),
      ).rejects.toMatchObject({ code: 'APPROVAL_INVALID' });
      expect((await bench.pending(asked)).interaction_id).toBe(id);
      expect(bench.commands()).toEqual([]);
    }),
);

test('a change of files is shown with its diff, and is written when it is approved', async () =>
  withBench(async (bench) => {
    const asked = await bench.play('[[patch made.txt hello]] [[done 1]]');
    const { question } = await bench.pending(asked);
    expect(question).toMatchObject({
      kind: 'approval',
      action: {
        kind: 'file_change',
        changes: [{ path: expect.stringContaining('made.txt'), kind: 'add', diff: expect.stringContaining('hello') }],
      },
    });
    expect(existsSync(join(asked.spec.cwd, 'made.txt'))).toBe(false);
    expect((await bench.reply(asked, { decision: 'approve' })).status).toBe('succeeded');
    expect(readFileSync(join(asked.spec.cwd, 'made.txt'), 'utf8')).toContain('hello');
  }));

test('two approvals at once are asked one after the other, in the same process, each for its own command', async () =>
  withBench(async (bench) => {
    const first = await bench.play('[[parallel echo a >> a.txt | echo b >> b.txt]] [[done 1]]');
    const one = (await bench.pending(first)).question;
    const second = await bench.reply(first, { decision: 'approve' });
    const two = (await bench.pending(second)).question;
    expect(one.digest).not.toBe(two.digest);
    const commandOf = ({ action }: typeof one): string => String((action as { command: string }).command);
    expect([commandOf(one), commandOf(two)].map((text) => /echo (\w)/.exec(text)?.[1]).toSorted()).toEqual(['a', 'b']);
    expect(await bench.reply(first, { decision: 'decline' })).toMatchObject({ status: 'succeeded' });
    expect(bench.commands()).toHaveLength(1);
    expect(commandOf(one)).toContain(String(bench.commands()[0]));
    expect(await bench.pids(first)).toHaveLength(1);
  }));

describe('when the asking process has exited', () => {
  const PARKED = { settings: { residents: { parkAfterMs: 0, max: 8 } } };

  test.each([
    { decision: 'approve', runs: 1 },
    { decision: 'approve_for_session', runs: 1 },
    { decision: 'decline', runs: 0 },
  ])(
    '$decision goes to another process, and is applied when the agent asks for the same again',
    async ({ decision, runs }) =>
      withBench(async (bench) => {
        const asked = await bench.play(`[[approve ${COMMAND}]] [[done 1]]`);
        const { question, interaction_id: id } = await bench.pending(asked);
        await gone(asked.run_id);
        expect(await bench.reply(asked, { decision })).toMatchObject({ status: 'succeeded', result: 1 });
        expect(bench.commands()).toHaveLength(runs);
        expect(await bench.pids(asked)).toHaveLength(2);
        const events = await bench.events(asked);
        // The turn that declines it asks for nothing else.
        expect(dataOf(events, 'interaction.approval.applied')).toMatchObject(
          decision === 'decline' ? [] : [{ interaction_id: id, decision, digest: question.digest, actor: ADA }],
        );
        if (decision !== 'decline') expectAppliedFirst(events);
      }, PARKED),
  );

  test('a cancel needs no process at all', async () =>
    withBench(async (bench) => {
      const asked = await bench.play(`[[approve ${COMMAND}]] [[done 1]]`);
      await gone(asked.run_id);
      const stopped = await bench.reply(asked, { decision: 'cancel' });
      expect((await bench.pending(stopped)).question).toMatchObject({ channel: 'conversation' });
      expect(await bench.pids(asked)).toHaveLength(1);
      expect(bench.commands()).toEqual([]);
    }, PARKED));

  test('another command is asked for again, and the first decision is used for nothing', async () =>
    withBench(async (bench) => {
      const asked = await bench.play(`[[approvechanged ${COMMAND} || echo other >> other.txt]] [[done 1]]`);
      await gone(asked.run_id);
      const again = await bench.reply(asked, { decision: 'approve' });
      expect(again.status).toBe('waiting_user');
      expect((await bench.pending(again)).question).toMatchObject({
        kind: 'approval',
        action: { command: expect.stringContaining('other.txt') },
      });
      expect(bench.commands()).toEqual([]);
      await gone(asked.run_id);
      expect((await bench.reply(asked, { decision: 'approve' })).status).toBe('succeeded');
      expect(bench.commands()).toEqual([expect.stringContaining('other.txt')]);
    }, PARKED));

  test('a decision holds once: the same command a second time is asked for', async () =>
    withBench(async (bench) => {
      const asked = await bench.play(`[[approve ${COMMAND}]] [[approve ${COMMAND}]] [[done 1]]`);
      await gone(asked.run_id);
      const again = await bench.reply(asked, { decision: 'approve' });
      expect(again.status).toBe('waiting_user');
      expect(bench.commands()).toHaveLength(1);
      expect((await bench.pending(again)).question).toMatchObject({ kind: 'approval' });
    }, PARKED));

  test('an unused decision dies with its turn', async () =>
    withBench(async (bench) => {
      const asked = await bench.play(`[[approvechanged ${COMMAND} || true]] [[approve ${COMMAND}]] [[done 1]]`);
      await gone(asked.run_id);
      // Asked for another action; after its answer, the first command is requested again.
      const other = await bench.reply(asked, { decision: 'approve' });
      expect((await bench.pending(other)).question).toMatchObject({
        action: { command: expect.stringContaining('true') },
      });
      await gone(asked.run_id);
      const first = await bench.reply(asked, { decision: 'approve' });
      expect((await bench.pending(first)).question).toMatchObject({
        action: { command: expect.stringContaining(COMMAND) },
      });
      expect(bench.commands()).toEqual([expect.stringContaining('true')]);
    }, PARKED));

  test('a change whose diff was not seen is asked for again', async () =>
    withBench(async (bench) => {
      const asked = await bench.play('[[hiddenpatch made.txt hello]] [[done 1]]');
      expect((await bench.pending(asked)).question).toMatchObject({
        action: { kind: 'file_change', diff_seen: false },
      });
      await gone(asked.run_id);
      const again = await bench.reply(asked, { decision: 'approve' });
      expect(again.status).toBe('waiting_user');
      expect((await bench.pending(again)).question).toMatchObject({ kind: 'approval' });
      expect(existsSync(join(asked.spec.cwd, 'made.txt'))).toBe(false);
    }, PARKED));

  test('a change that was not seen is asked for again, also under the id that was approved', async () =>
    withBench(async (bench) => {
      const asked = await bench.play('[[hiddenpatch0 made.txt hello]] [[done 1]]');
      const { question, interaction_id: id } = await bench.pending(asked);
      expect(question).toMatchObject({ action: { kind: 'file_change', item_id: 'call_stand_in_0', diff_seen: false } });
      await gone(asked.run_id);
      const again = await bench.reply(asked, { decision: 'approve' });
      expect(again.status).toBe('waiting_user');
      const second = await bench.pending(again);
      expect(second.interaction_id).not.toBe(id);
      // The same by all known facts.
      expect(second.question).toMatchObject({
        kind: 'approval',
        action: question['action'],
        digest: question['digest'],
      });
      expect(existsSync(join(asked.spec.cwd, 'made.txt'))).toBe(false);
      expect(dataOf(await bench.events(asked), 'interaction.approval.applied')).toEqual([]);
    }, PARKED));

  test('silence declines: nothing is ever allowed by it', async () =>
    withBench(async (bench) => {
      const asked = await bench.play(`[[approve ${COMMAND}]] [[done 1]]`, {
        runtime_options: { interactive_require_user_reply: false, session_timeout_sec: 0.2 },
      });
      await vi.waitFor(async () => expect((await bench.data.store.loadRun(asked.run_id))?.status).toBe('succeeded'), {
        timeout: 20_000,
      });
      await bench.waitUntilIdle(asked);
      expect(bench.commands()).toEqual([]);
      expect(dataOf(await bench.events(asked), 'interaction.auto_decide.timeout')).toMatchObject([
        { policy: 'decline' },
      ]);
    }, PARKED));
});

test.each([
  { kept: 'lives', parkAfterMs: 1_000_000 },
  { kept: 'is gone', parkAfterMs: 0 },
])(
  'while the process that asked $kept, nothing is sent before it is stored that the decision is used',
  async ({ parkAfterMs }) => {
    const gate = new Gate();
    let isHeld = false;
    const bench = await openResidentBench({
      settings: { residents: { parkAfterMs, max: 8 } },
      store: (store) =>
        new Proxy(store, {
          get: (target, name) => {
            const member = Reflect.get(target, name, target) as unknown;
            if (typeof member !== 'function') return member;
            if (name !== 'append') return member.bind(target) as unknown;
            return async (change: RunAppend) => {
              if (change.lines?.rasp.bytes.includes('interaction.approval.applied')) {
                isHeld = true;
                await gate.opened;
              }
              return target.append(change);
            };
          },
        }),
    });
    const asked = await bench.play(`[[approve ${COMMAND}]] [[done 1]]`);
    if (parkAfterMs === 0) await gone(asked.run_id);
    const { interaction_id: id } = await bench.pending(asked);
    await bench.orchestrator.reply(asked.run_id, { interaction_id: id, response: { decision: 'approve' } });
    await vi.waitFor(() => expect(isHeld).toBe(true), { timeout: 20_000 });
    const sent = (): string =>
      readFileSync(join(bench.data.path, 'runs', asked.run_id, 'agents/main/runtime/requests.jsonl'), 'utf8');
    // Other work in progress has its time.
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(sent()).not.toContain('"decision":"accept"');
    expect(bench.commands()).toEqual([]);
    gate.open();
    expect((await bench.waitUntilIdle(asked)).status).toBe('succeeded');
    expect(sent()).toContain('"decision":"accept"');
    expect(bench.commands()).toHaveLength(1);
    await bench.close();
  },
);

// The decision is stored before the engine receives it, and so before any effect of the command.
function expectAppliedFirst(events: readonly RaspEvent[]): void {
  const applied = events.findIndex(({ event }) => event.type === 'interaction.approval.applied');
  const completed = events.findIndex(
    ({ event, data }) => event.type === 'tool.call.completed' && data['status'] === 'completed',
  );
  expect(applied).toBeGreaterThan(0);
  expect(completed).toBeGreaterThan(applied);
}
