// The clock of the machine jumps, by hours, years and to 1970, forward and back, at any point of a run and across
// restarts, seeded.
//
// The rules. The order is by seq and never by time; the times of a run never go back, so after a jump back they stay
// the same until the clock has caught up. The deadline of a question is a clock time, which people see (due_at): it is
// decided at the next check after the clock has reached it, and never before; a jump back makes it wait longer, and no
// jump decides it twice or answers one that only a person may answer. Limits of a turn use timers, which no jump
// affects. Retention follows the clock, and never deletes a run that has not ended. Tokens here have no expiry.
// PARLEY_CLOCK_HISTORIES sets the number of histories.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { isTerminal } from '../../src/run/statechart.js';
import type { InteractionRecord, RunRecord } from '../../src/store/store.js';
import { createSite, parley, untilRun } from '../support/command.js';
import { createRoot, expectSound, openBench, type Bench } from '../support/orchestrated.js';
import { startServer } from '../support/served-process.js';
import { SimulatedTime } from '../support/simulated-timers.js';
import { chance, Figures, SEED, type Chance } from '../support/torture.js';

const HISTORIES = Number(process.env['PARLEY_CLOCK_HISTORIES'] ?? 2);
const STEPS = 12;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const TIMEOUT_SEC = 600;
const START = Date.UTC(2026, 0, 1);

const figures = new Figures('clock');
afterAll(() => figures.tell());

// The targets of the jumps.
const JUMPS: readonly ((now: number, by: Chance) => number)[] = [
  (now, by) => now + by.below(6 * HOUR),
  (now, by) => now - by.below(6 * HOUR),
  (now, by) => now + by.below(400 * DAY),
  (now, by) => now - by.below(400 * DAY),
  () => START - 3 * DAY,
  () => 1000,
  () => Date.UTC(2099, 11, 31),
  () => START + DAY,
];

class History {
  readonly #root = createRoot();
  readonly #time = new SimulatedTime(START);
  readonly #by: Chance;
  readonly #created: string[] = [];
  readonly #deleted = new Set<string>();
  // The latest time that the clock showed while a question was pending.
  readonly #latest = new Map<string, number>();
  readonly #questions = new Map<string, InteractionRecord>();
  #bench!: Bench;

  constructor(number: number) {
    this.#by = chance(number);
  }

  async live(): Promise<void> {
    await this.#open();
    await this.#create();
    for (let step = 0; step < STEPS; step += 1) {
      const [name, act] = this.#by.pick(this.#steps);
      await act();
      await this.#look();
      await this.#check(`step ${step}: ${name}`);
    }
    await this.#end();
  }

  readonly #steps: readonly (readonly [string, () => Promise<void>])[] = [
    ['create', () => this.#create()],
    ['jump', async () => this.#jump()],
    ['jump', async () => this.#jump()],
    ['jump while a turn runs', () => this.#jumpInTurn()],
    ['jump there and back', async () => this.#jumpAndBack()],
    ['time passes', async () => this.#time.advance(this.#by.below(2 * TIMEOUT_SEC * 1000))],
    ['reply', () => this.#reply()],
    ['reply', () => this.#reply()],
    ['cancel', () => this.#cancel()],
    ['restart after a jump', () => this.#restart()],
    ['sweep', () => this.#sweep()],
  ];

  async #open(): Promise<void> {
    this.#bench = await openBench(this.#root, { clock: this.#time.clock, timers: this.#time.createTimers() });
  }

  async #create(prompt = '[[answer Hello.]][[ask Which?|A|B]][[ask And?]][[done {"n":1}]]'): Promise<void> {
    const strict = this.#by.below(2) === 0;
    const { run_id: id } = await this.#bench.orchestrator.create({
      engine: 'codex',
      prompt,
      execution_mode: 'interactive',
      permission: 'full',
      runtime_options: { session_timeout_sec: TIMEOUT_SEC, interactive_require_user_reply: strict },
    });
    // Within one process, ids are in order, whatever the clock does.
    this.#created.push(id);
    figures.add('runs');
  }

  #jump(): void {
    // No system lets its clock be set to a time before 1970.
    this.#time.setClock(Math.max(1000, this.#by.pick(JUMPS)(this.#time.now, this.#by)));
    figures.add('jumps');
  }

  // Nothing checks in between.
  #jumpAndBack(): void {
    const { now } = this.#time;
    this.#time.setClock(now + 400 * DAY);
    this.#time.setClock(now + 1000);
    figures.add('jumps', 2);
  }

  async #jumpInTurn(): Promise<void> {
    await this.#create('[[answer Hello.]][[sleep 60]][[answer Then.]][[ask Which?|A|B]][[done 1]]');
    this.#jump();
  }

  async #reply(): Promise<void> {
    const pending = await this.#pick('waiting_user');
    if (!pending) return;
    const question = await this.#bench.data.store.loadPendingInteraction(pending.run_id);
    await this.#bench.orchestrator.reply(pending.run_id, {
      interaction_id: question?.interaction_id ?? '',
      response: 'A',
    });
    figures.add('answers');
  }

  async #cancel(): Promise<void> {
    const run = await this.#pick('waiting_user');
    if (run) expect((await this.#bench.orchestrator.cancel(run.run_id)).status).toBe('canceled');
  }

  async #restart(): Promise<void> {
    await this.#bench.close();
    this.#jump();
    await this.#open();
    figures.add('restarts');
  }

  async #sweep(): Promise<void> {
    const runs = new Map((await this.#runs()).map((run) => [run.run_id, run]));
    const since = this.#time.now + 1000 - 30 * DAY;
    for (const id of await this.#bench.orchestrator.sweep({ ended_after_days: 30 })) {
      const run = runs.get(id);
      expect(run && isTerminal(run.status) && run.updated_at < since, `${id} was deleted`).toBe(true);
      this.#deleted.add(id);
      figures.add('runs deleted');
    }
  }

  async #runs(): Promise<RunRecord[]> {
    return this.#bench.data.store.listRuns({ limit: 1000 });
  }

  async #pick(status: RunRecord['status']): Promise<RunRecord | null> {
    const runs = (await this.#runs()).filter((run) => run.status === status);
    return runs.length === 0 ? null : this.#by.pick(runs);
  }

  // All work finishes at the current clock time.
  async #look(): Promise<void> {
    for (const id of this.#questions.keys())
      this.#latest.set(id, Math.max(this.#latest.get(id) ?? 0, this.#time.now + 1000));
    await this.#bench.orchestrator.quiet();
    for (const id of this.#created) {
      if (this.#deleted.has(id)) continue;
      for (const question of await this.#bench.data.store.listInteractions(id)) {
        const before = this.#questions.get(question.interaction_id);
        // A decided or answered question stays so.
        if (before && before.state !== 'pending') expect(question).toEqual(before);
        this.#questions.set(question.interaction_id, question);
        this.#latest.set(
          question.interaction_id,
          Math.max(this.#latest.get(question.interaction_id) ?? 0, this.#time.now + 1000),
        );
      }
    }
  }

  async #check(where: string): Promise<void> {
    const kept = (await this.#runs()).map((run) => run.run_id);
    expect(kept.toSorted(), where).toEqual(this.#created.filter((id) => !this.#deleted.has(id)).toSorted());
    for (const id of kept) await expectSound(this.#bench, id);
    for (const { interaction_id: id, state, due_at: due, decides } of this.#questions.values()) {
      if (state !== 'auto_decided') continue;
      expect(decides, `${where}: ${id} only a person may answer`).toBe(true);
      expect(this.#latest.get(id) ?? 0, `${where}: ${id} was decided before its time`).toBeGreaterThanOrEqual(due);
    }
    expect(this.#bench.failures, where).toEqual([]);
  }

  // After the clock is right again and time continues, everything that may be decided is, and people answer the rest.
  async #end(): Promise<void> {
    const waiting = async () => (await this.#runs()).filter(({ status }) => status === 'waiting_user');
    for (let round = 0; round < 2; round += 1) {
      const latest = Math.max(START, ...[...this.#questions.values()].map(({ due_at: due }) => due));
      this.#time.setClock(Math.max(this.#time.now, latest) + 1);
      await this.#restart();
      for (const { run_id: id } of await waiting()) {
        const question = await this.#bench.data.store.loadPendingInteraction(id);
        if (question && !question.decides)
          await this.#bench.orchestrator.reply(id, { interaction_id: question.interaction_id, response: 'A' });
      }
      this.#time.advance(TIMEOUT_SEC * 1000 + 1);
      await this.#look();
    }
    for (let question = 0; question < 3; question += 1) {
      this.#time.setClock(Date.UTC(2150 + question, 0, 1));
      await this.#bench.close();
      await this.#open();
      await this.#look();
    }
    for (const run of await waiting())
      expect(run.spec.runtime_options, 'a question that is decided by itself still waits').toMatchObject({
        interactive_require_user_reply: true,
      });
    figures.add(
      'decided by themselves',
      [...this.#questions.values()].filter(({ state }) => state === 'auto_decided').length,
    );
    await this.#bench.close();
  }
}

test.each(Array.from({ length: HISTORIES }, (_, number) => number))(
  `whatever the clock does, nothing is lost, decided early or out of order: history %d (seed ${SEED})`,
  { timeout: 120_000 },
  async (number) => {
    await new History(number).live();
  },
);

test('ids made in one life of a process stay in their order when the clock goes back', async () => {
  const time = new SimulatedTime(START);
  const bench = await openBench(createRoot(), {
    clock: time.clock,
    timers: time.createTimers(),
    settings: { slots: 0 },
  });
  const made: string[] = [];
  for (const at of [START, START - DAY, 1000, START + DAY, START - HOUR]) {
    time.setClock(at);
    made.push((await bench.orchestrator.create({ engine: 'codex', prompt: 'x' })).run_id);
  }
  expect(made).toEqual(made.toSorted());
  expect((await bench.data.store.listRuns({ limit: 10 })).map(({ run_id: id }) => id)).toEqual(made.toReversed());
  await bench.close();
});

test(
  'a server that is started with a clock of another decade knows its tokens, its runs and who waits',
  { timeout: 120_000 },
  async () => {
    const site = createSite();
    mkdirSync(site.data, { mode: 0o700 });
    writeFileSync(join(site.data, 'config.json'), JSON.stringify({ shutdown_grace_sec: 0.1 }));
    const shift = `--import=${new URL('../support/shift-clock.mjs', import.meta.url).href}`;
    let token = '';
    const waiting: string[] = [];
    for (const days of [0, -3650, 3650]) {
      const server = await startServer(site, ['--port', '0'], {
        env: { NODE_OPTIONS: shift, CLOCK_SHIFT_MS: String(days * DAY) },
      });
      if (token !== '') expect(server.token).toBe(token);
      ({ token } = server);
      const { run_id: id } = await server.client.create({
        engine: 'rehearsal',
        prompt: '[[ask Which?|a|b]][[done 1]]',
        execution_mode: 'interactive',
      });
      await untilRun(site, 'waiting_user', id);
      const earlier = waiting.shift();
      waiting.push(id);
      if (earlier !== undefined) {
        const { interaction_id: question } = await server.client.interaction(earlier);
        await server.client.reply(earlier, { interaction_id: question, response: 'a' });
        expect((await untilRun(site, 'succeeded', earlier)).result).toBe(1);
      }
      expect((await server.client.list({ limit: 10 })).runs.map((run) => run.run_id)).toContain(id);
      server.child.kill('SIGTERM');
      expect(await server.ended).toMatchObject({ code: 0, stderr: '' });
      figures.add('servers of another decade');
    }
    expect(await parley(site, ['verify', '--all'])).toMatchObject({ code: 0 });
  },
);
