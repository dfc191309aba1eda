// A slow disk, then a power cut: the server is killed, and all unsynced bytes are cut off its logs. Everything
// acknowledged is there: runs, answers, events of a stream. Meanwhile several runs continue in parallel.
// PARLEY_FSYNC_CUTS: number of power cuts, PARLEY_FSYNC_MS: how slow the disk is.
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { createClient } from '../../src/client/client.js';
import { ParleyError } from '../../src/client/parley-error.js';
import { isTerminal } from '../../src/run/statechart.js';
import { createSite, listRuns, UNPACKED, withData, type Site } from '../support/command.js';
import { startServer, type ServerProcess } from '../support/served-process.js';
import { chance, Figures, SEED } from '../support/torture.js';

const CUTS = Number(process.env['PARLEY_FSYNC_CUTS'] ?? 1);
const SLOW_MS = Number(process.env['PARLEY_FSYNC_MS'] ?? 50);
const RUNS = 4;
const PRELOAD = `--import=${new URL('../support/slow-disk.mjs', import.meta.url).href}`;
const PROMPT = '[[events 30 100]][[ask Go on?]][[events 30 100]][[ask Again?]][[done 1]]';

const figures = new Figures('fsync');
afterAll(() => figures.tell());

// The confirmations that a client received.
interface Promised {
  readonly runs: Set<string>;
  readonly answers: Set<string>;
  readonly seqs: Map<string, number>;
}

// The server was killed: requests in progress get no response.
async function untilGone(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof ParleyError && error.passing)) throw error;
  }
}

async function converse({ url, token }: ServerProcess, promised: Promised, signal: AbortSignal): Promise<void> {
  const client = createClient({ url, token, wait: () => pause(10) });
  const { run_id: id } = await client.create({ engine: 'rehearsal', prompt: PROMPT, execution_mode: 'interactive' });
  promised.runs.add(id);
  for await (const { seq, type, data } of client.events(id, { signal, onReconnect: () => {} })) {
    expect(seq, id).toBe((promised.seqs.get(id) ?? 0) + 1);
    promised.seqs.set(id, seq);
    if (type !== 'user.input.required') continue;
    const { interaction_id: question } = data as unknown as { interaction_id: string };
    await client.reply(id, { interaction_id: question, response: 'Yes.', idempotency_key: question });
    promised.answers.add(question);
  }
}

// Only durable data remains.
function cutPower(site: Site, ledger: string): void {
  const durable = new Map<string, number>();
  for (const line of existsSync(ledger) ? readFileSync(ledger, 'utf8').split('\n').filter(Boolean) : []) {
    const { path, bytes } = JSON.parse(line) as { path: string; bytes: number };
    durable.set(path, bytes);
  }
  const runs = join(site.data, 'runs');
  for (const name of readdirSync(runs, { recursive: true, encoding: 'utf8' })) {
    const path = join(runs, name);
    if (!/\/(?:stdout\.log|stderr\.log|rasp\.jsonl|fcmp\.jsonl)$/.test(path)) continue;
    const kept = Math.min(durable.get(path) ?? 0, statSync(path).size);
    figures.add('bytes cut off', statSync(path).size - kept);
    truncateSync(path, kept);
  }
}

test.each(Array.from({ length: CUTS }, (_, number) => number))(
  `acknowledged data is there after a power cut, %d (seed ${SEED})`,
  { timeout: 120_000 },
  async (number) => {
    const site = createSite();
    mkdirSync(site.data, { mode: 0o700 });
    writeFileSync(
      join(site.data, 'config.json'),
      JSON.stringify({ slots: RUNS, shutdown_grace_sec: 0.1, recovery: { queued: 'requeue' } }),
    );
    const ledger = join(site.root, 'durable.jsonl');
    const by = chance(number);
    const server = await startServer(site, ['--port', '0'], {
      program: UNPACKED,
      env: { NODE_OPTIONS: PRELOAD, SLOW_MS: String(SLOW_MS), SLOW_SEED: String(SEED + number), DURABLE: ledger },
    });
    const promised: Promised = { runs: new Set(), answers: new Set(), seqs: new Map() };
    const leave = new AbortController();
    const talking = Promise.all(
      Array.from({ length: RUNS }, () => untilGone(() => converse(server, promised, leave.signal))),
    );
    // During the run: after some questions were answered, or before.
    const answers = by.below(RUNS);
    await expect.poll(() => promised.answers.size, { timeout: 60_000, interval: 10 }).toBeGreaterThanOrEqual(answers);
    await pause(by.below(10 * SLOW_MS));
    server.child.kill('SIGKILL');
    await server.ended;
    leave.abort();
    await talking;
    const endedRuns = new Set(
      (await listRuns(site))
        .filter(({ status }) => isTerminal(status) || status === 'waiting_user')
        .map((run) => run.run_id),
    );
    cutPower(site, ledger);
    figures.add('power cuts');

    const again = await startServer(site);
    const kept = await listRuns(site);
    expect(
      [...promised.runs].filter((id) => !kept.some((run) => run.run_id === id)),
      'runs that were told and are lost',
    ).toEqual([]);
    for (const { run_id: id, heads } of kept)
      expect(heads.fcmp_seq, `events of ${id} that were told`).toBeGreaterThanOrEqual(promised.seqs.get(id) ?? 0);
    for (const id of promised.answers)
      expect((await withData(site, ({ store }) => store.loadInteraction(id)))?.state, `the answer to ${id}`).toBe(
        'answered',
      );
    const findings = async (id: string) =>
      (await again.client.verify(id)).checks.filter(({ ok }) => !ok).map(({ name }) => name);
    for (const { run_id: id } of kept) {
      // Ended runs are complete; for a turn in progress, verify names the missing data.
      if (endedRuns.has(id)) await expect.poll(() => findings(id), { timeout: 10_000 }).toEqual([]);
      else expect(['hashes', 'cover', 'conversation', 'files'], id).toEqual(expect.arrayContaining(await findings(id)));
      figures.add(endedRuns.has(id) ? 'runs at rest' : 'runs cut off');
    }
    figures.add('runs told', promised.runs.size);
    figures.add('answers told', promised.answers.size);
    figures.add(
      'events told',
      [...promised.seqs.values()].reduce((sum, seq) => sum + seq, 0),
    );
    again.child.kill('SIGTERM');
    expect((await again.ended).code).toBe(0);
  },
);

test(
  'several runs continue in parallel on a slow disk, and others are answered meanwhile',
  { timeout: 120_000 },
  async () => {
    const site = createSite();
    const server = await startServer(site, ['--port', '0'], {
      program: UNPACKED,
      env: { NODE_OPTIONS: PRELOAD, SLOW_MS: String(SLOW_MS), DURABLE: join(site.root, 'durable.jsonl') },
    });
    const promised: Promised = { runs: new Set(), answers: new Set(), seqs: new Map() };
    const talking = Promise.all(
      Array.from({ length: RUNS }, () => converse(server, promised, new AbortController().signal)),
    );
    // How many requests were answered meanwhile. If one had to wait for the writes of a conversation, there would be
    // about as many as conversations.
    let looks = 0;
    const over = new AbortController();
    const looking = (async () => {
      while (!over.signal.aborted) {
        await server.client.list({ limit: 10 });
        looks += 1;
        await pause(20);
      }
    })();
    await talking;
    over.abort();
    await looking;
    expect((await listRuns(site)).map(({ status }) => status)).toEqual(Array.from({ length: RUNS }, () => 'succeeded'));
    expect(looks).toBeGreaterThan(3 * RUNS);
    figures.add('looks during four conversations', looks);
  },
);
