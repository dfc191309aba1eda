// The server as a process that is killed, stopped and started again: waiting runs can be answered afterwards, and
// connected clients continue by themselves. PARLEY_WAITING_RUNS sets their number.
import { singleHost } from '../../../src/ownership/single-host.js';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createClient, type ParleyClient } from '../../../src/client/client.js';
import { systemClock } from '../../../src/kernel/clock.js';
import { createIds } from '../../../src/kernel/ids.js';
import { applyRunEvent } from '../../../src/journal/apply-run-event.js';
import { createRun } from '../../../src/commands/create-run.js';
import { draft } from '../../../src/rasp/draft.js';
import { openDataDir, readWriter } from '../../../src/store/sqlite/data-dir.js';
import {
  createSite,
  hasWorker,
  parley,
  start,
  untilEngine,
  untilGone,
  untilRun,
  withData,
  type Site,
} from '../../support/command.js';
import { readAsBrowser } from '../../support/event-source.js';
import { startServer, type ServerProcess } from '../../support/served-process.js';
import { steadyPort } from '../../support/steady-port.js';

const WAITING = Number(process.env['PARLEY_WAITING_RUNS'] ?? 200);
const PATIENCE = { timeout: 60_000, interval: 20 };
const FACTS = { pending: true, handle: true, requireUserReply: true, sticky: false };
const SESSION = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';
const ASK = '[[ask Which?|a|b]]';

// Waiting runs, as if their turns had been run.
async function fill(site: Site, count: number): Promise<string[]> {
  mkdirSync(site.data, { recursive: true, mode: 0o700 });
  const data = await openDataDir(site.data, { pid: process.pid });
  const ids = createIds(systemClock);
  const deps = {
    store: data.store,
    clock: systemClock,
    ids,
    dataDir: data.path,
    queueLimit: () => Infinity,
    ...singleHost(data.store),
    runtime: {},
  } as never;
  const made: string[] = [];
  for (let number = 0; number < count; number += 1) {
    const run = await createRun(
      deps,
      { engine: 'rehearsal', prompt: 'go', execution_mode: 'interactive', cwd: site.cwd },
      {},
    );
    const sessions = join(run.spec.home ?? '', '.parley-rehearsal', 'sessions');
    mkdirSync(sessions, { recursive: true });
    writeFileSync(join(sessions, `${SESSION}.json`), '{}');
    const started = await applyRunEvent(deps, run, { event: 'turn.started', facts: FACTS, epoch: 1 });
    if (!started.applied) throw new Error('the chart has changed');
    const [id, askedAt] = [ids.interaction(), systemClock.now()];
    const question = {
      interaction_id: id,
      kind: 'open_text',
      channel: 'conversation',
      prompt: 'Which?',
      options: [],
      asked_at: new Date(askedAt).toISOString(),
    } as const;
    await applyRunEvent(deps, started.run, {
      event: 'turn.needs_input',
      facts: FACTS,
      before: [
        draft('lifecycle.session.confirmed', {
          session: { session_id: SESSION, handle_type: 'session_id', created_at_attempt: 1 },
        }),
        draft('interaction.requested', question as never),
      ],
    });
    made.push(run.run_id);
  }
  await data.close();
  return made;
}

// A client with short delays before it reconnects.
function patient({ url, token }: ServerProcess): ParleyClient {
  return createClient({ url, token, wait: () => new Promise((resolve) => setTimeout(resolve, 20)) });
}

// The waiting questions, as known to a reader of the inbox stream only.
function followInbox(
  client: ParleyClient,
  signal: AbortSignal,
): { readonly waiting: Set<string>; readonly resets: number } {
  const state = { waiting: new Set<string>(), resets: 0 };
  void (async () => {
    for await (const change of client.inboxChanges({ signal })) {
      if (change.type === 'reset') state.waiting.clear();
      if (change.type === 'ready') state.resets += 1;
      if (change.type === 'pending') state.waiting.add(change.item.run_id);
      if (change.type === 'resolved') state.waiting.delete(change.item.run_id);
    }
  })();
  return state;
}

const storedOf = (site: Site, id: string, protocol: 'rasp' | 'fcmp') =>
  withData(site, ({ store }) => store.readJournal(id, protocol, { limit: 1e6 }));

test(
  `after SIGKILL all ${WAITING} waiting runs can be answered, and clients continue gaplessly`,
  { timeout: 120_000 + WAITING * 300 },
  async () => {
    const site = createSite();
    const ids = await fill(site, WAITING);
    const first = await startServer(site, ['--port', String(await steadyPort())]);
    const { run_id: real } = await first.client.create({
      engine: 'rehearsal',
      prompt: `${ASK}[[done {"n":1}]]`,
      execution_mode: 'interactive',
    });
    const { run_id: atWork } = await first.client.create({
      engine: 'rehearsal',
      prompt: '[[answer At work.]][[hang]]',
    });
    await untilRun(site, 'waiting_user', real);
    await untilEngine(site);
    const client = patient(first);
    const leave = new AbortController();
    const inboxes = Array.from({ length: 3 }, () => followInbox(client, leave.signal));
    const watched = [...ids.slice(0, 15), real, atWork];
    const seen = new Map<string, string[]>();
    let lost = 0;
    const reading = watched.map(async (id, index) => {
      const events: string[] = [];
      seen.set(id, events);
      if (index % 3 === 0)
        await readAsBrowser(`${first.url}/v1/runs/${id}/events`, {
          token: first.token,
          onEvent: (_seq, data) => void events.push(data.toString()),
        });
      else
        for await (const event of client.events(id, { onReconnect: () => void (lost += 1) }))
          events.push(JSON.stringify(event));
    });
    await expect
      .poll(() => inboxes.map(({ waiting, resets }) => [waiting.size, resets]), PATIENCE)
      .toEqual(inboxes.map(() => [WAITING + 1, 1]));
    await expect.poll(() => [...seen.values()].every((events) => events.length > 0), PATIENCE).toBe(true);

    first.child.kill('SIGKILL');
    await first.ended;
    const second = await startServer(site, ['--port', String(first.port)]);
    expect(second.token).toBe(first.token);
    await expect
      .poll(() => inboxes.map(({ waiting, resets }) => [waiting.size, resets]), PATIENCE)
      .toEqual(inboxes.map(() => [WAITING + 1, 2]));
    // The server ends the interrupted run beside other work.
    await expect
      .poll(async () => (await second.client.get(atWork)).error?.code)
      .toBe('ORCHESTRATOR_RESTART_INTERRUPTED');

    let answered = 0;
    for (
      let page = await second.client.inbox({ limit: 500 });
      page.interactions.length > 0;
      page = await second.client.inbox({ limit: 500 })
    ) {
      for (const { run_id: id, interaction_id: interaction } of page.interactions) {
        expect(
          (
            await second.client.reply(id, {
              interaction_id: interaction,
              ...(id === real ? { response: 'a' } : { finish: true }),
            })
          ).run_id,
        ).toBe(id);
        answered += 1;
      }
    }
    expect(answered).toBe(WAITING + 1);
    await Promise.all(reading);
    expect(lost).toBeGreaterThan(0);
    expect((await second.client.get(real)).result).toEqual({ n: 1 });
    for (const id of watched) expect(seen.get(id), id).toEqual(await storedOf(site, id, 'fcmp'));
    await expect.poll(() => inboxes.map(({ waiting }) => waiting.size), PATIENCE).toEqual(inboxes.map(() => 0));
    leave.abort();
  },
);

function writeGrace(site: Site, graceSec: number): void {
  mkdirSync(site.data, { recursive: true, mode: 0o700 });
  writeFileSync(join(site.data, 'config.json'), JSON.stringify({ shutdown_grace_sec: graceSec }));
}

describe('SIGTERM', () => {
  test('a running turn gets its time, then ends; waiting runs stay; streams end and resume on restart', async () => {
    const site = createSite();
    writeGrace(site, 1);
    const first = await startServer(site, ['--port', String(await steadyPort())]);
    const { run_id: waits } = await first.client.create({
      engine: 'rehearsal',
      prompt: `${ASK}[[done 1]]`,
      execution_mode: 'interactive',
    });
    await untilRun(site, 'waiting_user', waits);
    const before = await first.client.get(waits);
    const { run_id: atWork } = await first.client.create({
      engine: 'rehearsal',
      prompt: '[[answer At work.]][[hang]]',
    });
    const engine = await untilEngine(site);
    const events: string[] = [];
    const reading = (async () => {
      for await (const event of patient(first).events(waits)) events.push(JSON.stringify(event));
    })();
    await expect.poll(() => events.length, PATIENCE).toBe(before.fcmp_seq);
    expect(existsSync(join(site.data, 'server.json'))).toBe(true);
    first.child.kill('SIGTERM');
    expect(await first.ended).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^\{[^\n]*Interrupted 1 running turn\.[^\n]*\}\n$/) as string,
    });
    expect(existsSync(join(site.data, 'server.json'))).toBe(false);
    await untilGone(engine);
    const [ended, kept] = await withData(site, async ({ store }) => [
      await store.loadRun(atWork),
      await store.loadRun(waits),
    ]);
    expect([ended?.status, ended?.error?.code]).toEqual(['failed', 'ORCHESTRATOR_RESTART_INTERRUPTED']);
    expect([kept?.status, kept?.heads.rasp_seq]).toEqual(['waiting_user', before.rasp_seq]);
    const second = await startServer(site, ['--port', String(first.port)]);
    const { interaction_id: id } = await second.client.interaction(waits);
    await second.client.reply(waits, { interaction_id: id, response: 'a' });
    await reading;
    expect(events).toEqual(await storedOf(site, waits, 'fcmp'));
  });

  test('a turn that is done in time is done, and meanwhile nothing new is taken', async () => {
    const site = createSite();
    writeGrace(site, 600);
    const { client, child, ended } = await startServer(site);
    const { run_id: id } = await client.create({
      engine: 'rehearsal',
      prompt: '[[answer At work.]][[sleep 6000]][[done 1]]',
    });
    await untilEngine(site);
    child.kill('SIGTERM');
    const code = () =>
      client.request('POST', '/v1/runs', { engine: 'rehearsal', prompt: 'x', request_id: 'once' }).then(
        () => 'taken',
        (error: { code: string }) => error.code,
      );
    await expect.poll(code, PATIENCE).toBe('SHUTTING_DOWN');
    expect((await client.get(id)).status).toBe('running');
    expect((await ended).code).toBe(0);
    expect((await withData(site, ({ store }) => store.loadRun(id)))?.status).toBe('succeeded');
  });

  test('a second signal hurries', async () => {
    const site = createSite();
    writeGrace(site, 600);
    const { client, child, ended } = await startServer(site);
    const { run_id: id } = await client.create({ engine: 'rehearsal', prompt: '[[answer At work.]][[hang]]' });
    const engine = await untilEngine(site);
    child.kill('SIGTERM');
    await expect
      .poll(
        () =>
          client.cancel('run_none').then(
            () => '',
            (error: { code: string }) => error.code,
          ),
        PATIENCE,
      )
      .toBe('SHUTTING_DOWN');
    child.kill('SIGINT');
    expect((await ended).code).toBe(0);
    await untilGone(engine);
    expect((await withData(site, ({ store }) => store.loadRun(id)))?.status).toBe('failed');
  });
});

test('a second server on the same directory or on a port in use is refused with a helpful message', async () => {
  const site = createSite();
  const { port, client, child } = await startServer(site);
  const second = await parley(site, ['serve', '--port', '0']);
  expect([second.code, second.stdout]).toEqual([1, '']);
  expect(second.stderr).toMatch(
    new RegExp(`^parley: A server is already running for .*: http://127.0.0.1:${port} \\(process ${child.pid}\\)`),
  );
  const other = createSite();
  const taken = await parley(other, ['serve', '--port', String(port)]);
  expect(taken).toMatchObject({ code: 2, stdout: '' });
  expect(taken.stderr).toContain(`Port ${port} on 127.0.0.1 is in use. Choose another with --port`);
  expect((await client.list()).runs).toEqual([]);
  expect(existsSync(join(other.data, 'server.json'))).toBe(false);
});

test('the operator may use any folder; other tokens only allowed ones, unless the settings allow more', async () => {
  const site = createSite();
  const { client, url } = await startServer(site);
  const anywhere = join(site.root, 'anywhere');
  mkdirSync(anywhere);
  expect((await parley(site, ['run', 'rehearsal', '[[done 1]]', '-C', anywhere])).code).toBe(0);
  const named = createClient({
    url,
    token: (await parley(site, ['token', 'add', 'bot', '--role', 'operator'])).stdout.trim(),
  });
  await expect(named.create({ engine: 'rehearsal', prompt: '[[done 1]]', cwd: anywhere })).rejects.toMatchObject({
    code: 'PATH_NOT_ALLOWED',
  });
  const { run_id: id } = await named.create({ engine: 'rehearsal', prompt: '[[done 1]]', cwd: site.cwd });
  await untilRun(site, 'succeeded', id);
  expect((await client.get(id)).cwd).toBe(site.cwd);
});

test('a token that belongs to somebody else is not taken for that of the operator', async () => {
  const site = createSite();
  const token = (await parley(site, ['token', 'add', 'anna', '--role', 'viewer'])).stdout.trim();
  const refused = await parley(site, ['serve', '--port', '0'], { env: { PARLEY_TOKEN: token } });
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain('PARLEY_TOKEN is the token "anna" (viewer)');
  expect(refused.stderr).not.toContain(token);
});

test('the command line goes through the server, and by itself when the server was killed or has gone', async () => {
  const site = createSite();
  const server = await startServer(site);
  const by = () => [readWriter(site.data)?.pid, hasWorker(site)];
  const detached = async (...args: string[]) => {
    const { code, stdout, stderr } = await parley(site, args);
    expect(code, stderr).toBe(0);
    return stdout.trim();
  };
  const walk = async (): Promise<void> => {
    const asked = await detached('run', 'rehearsal', `${ASK}[[done 1]]`, '-i', '--detach');
    await untilRun(site, 'waiting_user', asked);
    expect((await parley(site, ['reply', asked, 'a'])).code).toBe(0);
    await untilRun(site, 'succeeded', asked);
    const next = await detached('continue', asked, '[[done 2]]', '--detach');
    await untilRun(site, 'succeeded', next);
    expect((await parley(site, ['retry', next])).code).toBe(0);
    const source = await detached('run', 'codex', '[[done 1]]', '--detach');
    await untilRun(site, 'succeeded', source);
    expect((await parley(site, ['fork', source, '[[done 2]]'])).code).toBe(0);
    const hangs = await detached('run', 'rehearsal', '[[answer At work.]][[hang]]', '--detach');
    await untilEngine(site);
    expect(await detached('cancel', hangs)).toContain('canceled');
    expect(await detached('rm', hangs)).toContain('deleted');
    expect((await parley(site, ['run', 'rehearsal', '[[done 1]]'])).code).toBe(0);
  };
  await walk();
  expect(by()).toEqual([server.child.pid, true]);
  const watching = start(site, ['run', 'rehearsal', ASK, '-i', '--json']);
  await watching.waitFor('user.input.required');
  server.child.kill('SIGKILL');
  await server.ended;
  await watching.ended;
  expect(existsSync(join(site.data, 'server.json'))).toBe(true);
  await walk();
  const again = await startServer(site);
  again.child.kill('SIGTERM');
  expect((await again.ended).code).toBe(0);
  expect((await parley(site, ['run', 'rehearsal', '[[done 1]]'])).code).toBe(0);
});
