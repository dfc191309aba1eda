// A real server with a full disk: no file may exceed a limit (ulimit -f), or its data directory is on a small file
// system (a tmpfs, if one can be mounted). It refuses data that it cannot store and keeps responding, or exits with a
// message. Nothing that it accepted is lost, and with free space again every run ends. PARLEY_DISK_ROOMS: number of
// sizes of each kind.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { createClient } from '../../src/client/client.js';
import { ParleyError } from '../../src/client/parley-error.js';
import { createSite, listRuns, parley, withData, type CallOptions, type Site } from '../support/command.js';
import { startServer, type ServerProcess } from '../support/served-process.js';
import { chance, Figures, SEED } from '../support/torture.js';

const ROOMS = Number(process.env['PARLEY_DISK_ROOMS'] ?? 2);
const RUNS = 3;
// Many times what fits into the largest size.
const MOST_RUNS = 40;
const PATIENCE = { timeout: 30_000, interval: 50 };

const figures = new Figures('disk');
afterAll(() => figures.tell());

interface Taken {
  readonly runs: string[];
  readonly answers: { readonly runId: string; readonly id: string }[];
}

// The server's errors when it cannot store something; any other error fails the test.
async function orRefused<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    expect(error instanceof ParleyError ? error.code : String(error), String(error)).toBe('STORE_UNAVAILABLE');
    figures.add('calls refused');
    return null;
  }
}

// As much as fits, and at least until something is refused. Every call gets a response.
async function use({ url, token }: ServerProcess): Promise<Taken> {
  // Retries at once: there will not be more space in a second.
  const client = createClient({ url, token, wait: async () => {} });
  const taken: Taken = { runs: [], answers: [] };
  const before = figures.get('calls refused');
  for (let number = 0; number < RUNS || figures.get('calls refused') === before; number += 1) {
    expect(number, 'nothing is refused, however much is asked for').toBeLessThan(MOST_RUNS);
    const run = await orRefused(() =>
      client.create({
        engine: 'rehearsal',
        prompt: `[[events 150 400]][[ask Go on?]][[events 150 400]][[done ${number}]]`,
        execution_mode: 'interactive',
        request_id: `disk-${number}`,
      }),
    );
    if (!run) continue;
    taken.runs.push(run.run_id);
    // It waits, or could not be started, or has not ended.
    let looks = 0;
    await expect
      .poll(async () => (await client.get(run.run_id)).status === 'waiting_user' || (looks += 1) > 15, PATIENCE)
      .toBe(true);
    const stored = await client.get(run.run_id);
    const id = stored.interaction?.interaction_id;
    if (id === undefined) continue;
    if (await orRefused(() => client.reply(run.run_id, { interaction_id: id, response: 'Yes.', idempotency_key: id })))
      taken.answers.push({ runId: run.run_id, id });
  }
  return taken;
}

async function expectAllThere(site: Site, { client }: ServerProcess, taken: Taken): Promise<void> {
  const kept = await listRuns(site);
  expect(
    taken.runs.filter((id) => !kept.some((run) => run.run_id === id)),
    'runs that were taken and are lost',
  ).toEqual([]);
  for (const { id } of taken.answers)
    expect((await withData(site, ({ store }) => store.loadInteraction(id)))?.state, `the answer to ${id}`).toBe(
      'answered',
    );
  for (const { run_id: id } of kept) {
    await expect
      .poll(async () => {
        const run = await client.get(id);
        if (run.interaction)
          await client.reply(id, { interaction_id: run.interaction.interaction_id, response: 'Yes.' });
        return run.status;
      }, PATIENCE)
      .toMatch(/succeeded|failed/);
    const { status, error } = await client.get(id);
    figures.add(`runs ${status}`);
    if (status === 'failed')
      expect(`${error?.code} ${error?.message}`).toMatch(
        /ORCHESTRATOR_RESTART_INTERRUPTED|DISK_FULL|INTERNAL .*(large|disk I\/O|EFBIG)/,
      );
    await expect.poll(async () => (await client.verify(id)).checks.filter(({ ok }) => !ok), PATIENCE).toEqual([]);
  }
}

// Null: it did not start, and reported why.
async function startIn(site: Site, options: CallOptions): Promise<ServerProcess | null> {
  try {
    return await startServer(site, ['--port', '0'], options);
  } catch (error) {
    expect(String(error)).toMatch(/DATA_DIR_UNUSABLE|ENOSPC|EFBIG|disk/);
    figures.add('starts refused');
    return null;
  }
}

async function starve(site: Site, options: CallOptions, makeRoom: () => void): Promise<void> {
  writeFileSync(join(site.data, 'config.json'), JSON.stringify({ slots: 2, shutdown_grace_sec: 0.1 }));
  const server = await startIn(site, options);
  const taken = server ? await use(server) : { runs: [], answers: [] };
  if (server) {
    figures.add('servers that ran out of room');
    // It continues, and requests return the existing data.
    expect((await server.client.list({ limit: 100 })).runs.map((run) => run.run_id)).toEqual(
      expect.arrayContaining(taken.runs),
    );
    server.child.kill('SIGTERM');
    const { code, stderr } = await server.ended;
    expect(code === 0 || /full|disk|ENOSPC|EFBIG/.test(stderr), `ended with ${code}: ${stderr}`).toBe(true);
  }
  makeRoom();
  const again = await startServer(site);
  await expectAllThere(site, again, taken);
  again.child.kill('SIGTERM');
  expect((await again.ended).code).toBe(0);
  expect((await parley(site, ['verify', '--all'])).code).toBe(0);
  figures.add('runs taken', taken.runs.length);
  figures.add('answers accepted', taken.answers.length);
}

describe(`a server without disk space (seed ${SEED})`, () => {
  test.each(Array.from({ length: ROOMS }, (_, number) => number))('no file larger than a limit, %d', async (number) => {
    // In blocks of 512 bytes: from too little for a start to nearly enough.
    const blocks = number === 0 ? 100 : 300 + chance(number).below(3000);
    const site = createSite();
    mkdirSync(site.data, { mode: 0o700 });
    await starve(site, { through: ['sh', '-c', `ulimit -f ${blocks}; exec "$0" "$@"`] }, () => {});
  });

  test.for(Array.from({ length: ROOMS - 1 }, (_, number) => number))(
    'a file system that is small, %d',
    async (number, { skip }) => {
      const site = createSite();
      mkdirSync(site.data, { mode: 0o700 });
      const size = 200 + chance(number, 7).below(2200);
      try {
        execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}k,mode=700`, 'tmpfs', site.data], { stdio: 'pipe' });
      } catch (error) {
        return skip(
          `no small file system can be mounted here: ${String((error as { stderr?: Buffer }).stderr ?? error).trim()}`,
        );
      }
      onTestFinished(() => void execFileSync('umount', ['-l', site.data]));
      figures.add('small file systems');
      await starve(site, {}, () => execFileSync('mount', ['-o', 'remount,size=64m', site.data]));
    },
  );
});
