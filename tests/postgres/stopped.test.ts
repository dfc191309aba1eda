// A host that is stopped (SIGSTOP) beyond its lease at critical points: others continue without it; when it resumes it
// stores, starts and sends nothing, and its engines are ended.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { expectNothingTwice, isThere } from '../support/engine-trace.js';
import { becomes, proves, rowsOf, withHosts, type Hosts } from '../support/hosts.js';
import type { ServerProcess } from '../support/served-process.js';

const GATE = 777;

// A write that starts a run waits until the gate is opened.
async function closeGate({ database }: Hosts): Promise<() => Promise<void>> {
  await database.query(
    `CREATE FUNCTION public.gate() RETURNS trigger
     LANGUAGE plpgsql
     AS $$ BEGIN PERFORM pg_advisory_xact_lock(${GATE}); RETURN NEW; END $$`,
  );
  await database.query(
    `CREATE TRIGGER gate
     BEFORE UPDATE ON parley.runs
     FOR EACH ROW
     WHEN (OLD.status = 'queued' AND NEW.status = 'running')
     EXECUTE FUNCTION public.gate()`,
  );
  await database.query('SELECT pg_advisory_lock($1)', [GATE]);
  return async () => void (await database.query('SELECT pg_advisory_unlock($1)', [GATE]));
}

// After it resumes, it ends all its work before it runs turns as a new host; each has one slot, and that of the other
// is taken.
async function wake(hosts: Hosts, stopped: ServerProcess, other: ServerProcess): Promise<void> {
  const { run_id: blocking } = await other.client.create({ engine: 'rehearsal', prompt: '[[hang]]' });
  await becomes(other.client, blocking).toBe('running');
  stopped.child.kill('SIGCONT');
  const { run_id: next } = await other.client.create({ engine: 'rehearsal', prompt: '[[done "again"]]' });
  await becomes(stopped.client, next).toBe('succeeded');
  expect(hosts.traced(next)).toHaveLength(1);
  await other.client.cancel(blocking);
}

test('stopped between claim and start: another host starts the run, once', async () => {
  const hosts = await withHosts({ slots: 1 });
  const a = await hosts.start('a');
  const openGate = await closeGate(hosts);
  const { run_id: id } = await a.client.create({ engine: 'rehearsal', prompt: '[[events 5 20]] [[done 1]]' });
  await hosts.database.untilWaiting(1);
  a.child.kill('SIGSTOP');
  // The database rolls back the transaction of the terminated connection.
  expect(await hosts.database.terminate(`wait_event_type = 'Lock'`)).toBe(1);
  await openGate();
  const b = await hosts.start('b');
  await becomes(b.client, id).toBe('succeeded');
  await proves(b.client, id);
  const before = await rowsOf(hosts, id);
  await wake(hosts, a, b);
  expect(await rowsOf(hosts, id)).toEqual(before);
  expect(hosts.traced(id).map(({ turn }) => turn)).toEqual([`${id}/1`]);
});

test('stopped when the run had just become running: the run is ended, and its engine is never started', async () => {
  const hosts = await withHosts({ slots: 1 });
  const a = await hosts.start('a');
  const openGate = await closeGate(hosts);
  const { run_id: id } = await a.client.create({ engine: 'rehearsal', prompt: '[[events 5 20]] [[done 1]]' });
  await hosts.database.untilWaiting(1);
  a.child.kill('SIGSTOP');
  await openGate();
  // Only now: while the first host waits at the gate, its claim may expire, and the second host would start the run.
  const b = await hosts.start('b');
  await becomes(b.client, id).toBe('failed');
  expect(await b.client.get(id)).toMatchObject({ error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' } });
  const before = await rowsOf(hosts, id);
  await wake(hosts, a, b);
  expect(await rowsOf(hosts, id)).toEqual(before);
  expect(hosts.traced(id)).toEqual([]);
  // A process that was ended before it could write would still have its logs opened.
  expect(
    hosts
      .foldersOf(id)
      .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }))
      .filter((path) => /std(?:out|err)/.test(path)),
  ).toEqual([]);
  await proves(b.client, id);
});

async function stopPrinting(hosts: Hosts): Promise<{ a: ServerProcess; id: string }> {
  const a = await hosts.start('a');
  const { run_id: id } = await a.client.create({ engine: 'rehearsal', prompt: '[[events 2000000 60]] [[hang]]' });
  await expect.poll(async () => (await rowsOf(hosts, id)).segments.length, { timeout: 30_000 }).toBeGreaterThan(4);
  a.child.kill('SIGSTOP');
  return { a, id };
}

test('stopped in the middle of printing: nothing more of it is stored, and what prints is ended', async () => {
  const hosts = await withHosts({ slots: 1 });
  const { a, id } = await stopPrinting(hosts);
  const b = await hosts.start('b');
  await becomes(b.client, id).toBe('failed');
  await proves(b.client, id);
  const before = await rowsOf(hosts, id);
  await wake(hosts, a, b);
  expect(hosts.traced(id).map((each) => isThere(each))).toEqual([false]);
  expect(await rowsOf(hosts, id)).toEqual(before);
  await proves(b.client, id);
});

test('suspended while printing, a lone host ends the process on waking and stores no more as its old id', async () => {
  const hosts = await withHosts({ slots: 1 });
  const { a, id } = await stopPrinting(hosts);
  await expect
    .poll(
      async () => (await hosts.database.query('SELECT FROM parley.hosts WHERE lease_until > clock_timestamp()')).length,
      { timeout: 10_000 },
    )
    .toBe(0);
  const before = await rowsOf(hosts, id);
  // It has more output, and nobody reads it.
  expect(hosts.traced(id).map((each) => isThere(each))).toEqual([true]);
  a.child.kill('SIGCONT');
  await becomes(a.client, id).toBe('failed');
  expect(await a.client.get(id)).toMatchObject({ error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' } });
  expect(hosts.traced(id).map((each) => isThere(each))).toEqual([false]);
  const { segments } = await rowsOf(hosts, id);
  // The output in between is read from its log, under the next epoch.
  expect(segments.filter((each) => Number((each as { epoch: string }).epoch) < 2)).toEqual(before.segments);
  await proves(a.client, id);
});

test.each(['shared', 'host'] as const)(
  'suspended with a waiting process (files: %s): another host applies answers once',
  async (files) => {
    const hosts = await withHosts({ files, slots: 1, goneSec: 3600 });
    const approved = join(hosts.site.root, 'approved.txt');
    const a = await hosts.start('a');
    const { run_id: id } = await a.client.create({
      engine: 'codex-app-server',
      prompt: `[[approve echo one >> ${approved}]] [[approve echo two >> ${approved}]] [[done 1]]`,
      execution_mode: 'interactive',
    });
    await becomes(a.client, id).toBe('waiting_user');
    const b = await hosts.start('b');
    const approve = async () =>
      b.client.reply(id, {
        interaction_id: (await b.client.interaction(id)).interaction_id,
        response: { decision: 'approve' },
      });
    const [old] = hosts.traced(id);
    if (!old) throw new Error('its engine was started');
    a.child.kill('SIGSTOP');
    expect(await approve()).toMatchObject({ status: 'queued', attempt_number: 2 });
    if (files === 'shared') {
      const asks = async () => {
        const { status, error, attempt_number: attempt } = await b.client.get(id);
        return { status, error, attempt };
      };
      await expect.poll(asks, { timeout: 20_000 }).toEqual({ status: 'waiting_user', error: null, attempt: 2 });
      await approve();
      await becomes(b.client, id).toBe('succeeded');
      const before = await rowsOf(hosts, id);
      await wake(hosts, a, b);
      expect(await rowsOf(hosts, id)).toEqual(before);
    } else {
      // Its files are on a host that does not run.
      await expect
        .poll(
          async () =>
            (
              await hosts.database.query(
                `SELECT FROM parley.hosts WHERE name = 'a' AND lease_until > clock_timestamp()`,
              )
            ).length,
          { timeout: 10_000 },
        )
        .toBe(0);
      expect((await b.client.get(id)).status).toBe('queued');
      a.child.kill('SIGCONT');
      await becomes(b.client, id).toBe('waiting_user');
      await approve();
      await becomes(b.client, id).toBe('succeeded');
    }
    await expect.poll(() => isThere(old), { timeout: 10_000 }).toBe(false);
    const traced = hosts.traced(id);
    expectNothingTwice(traced);
    // The old process received nothing after its question for permission; another one continued.
    expect(traced.map(({ turn }) => turn)).toEqual([`${id}/1`, `${id}/2`]);
    expect(hosts.traced(id)[0]?.input).toBe(old.input);
    expect(readFileSync(approved, 'utf8')).toBe('one\ntwo\n');
    await proves(b.client, id);
  },
);
