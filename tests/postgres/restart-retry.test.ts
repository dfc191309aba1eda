// recovery.running="retry" among hosts: a takeover of a dead host's runs creates exactly one retry for each.
import { expect, test } from 'vitest';
import { becomes, proves, withHosts } from '../support/hosts.js';

test('a run of a host that was killed fails, and one of the others repeats it once', async () => {
  const hosts = await withHosts({ slots: 2, recovery: { running: 'retry' } });
  const [a, b, c] = [await hosts.start('a'), await hosts.start('b'), await hosts.start('c')];
  const ids = await Promise.all(
    [0, 1, 2].map(
      async () => (await a.client.create({ engine: 'rehearsal', prompt: '[[say Working]][[hang]]' })).run_id,
    ),
  );
  for (const id of ids) await becomes(b.client, id).toBe('running');
  const owners = await hosts.database.query<{ run_id: string; name: string }>(
    'SELECT run_id, name FROM parley.runs JOIN parley.hosts ON host_id = owner',
  );
  const killed = [a, b, c].find((_, index) => owners.some(({ name }) => name === 'abc'[index]));
  const name = killed === a ? 'a' : killed === b ? 'b' : 'c';
  const client = killed === a ? b.client : a.client;
  killed?.child.kill('SIGKILL');
  await killed?.ended;
  const lost = owners.filter((owner) => owner.name === name).map(({ run_id: id }) => id);
  expect(lost.length).toBeGreaterThan(0);
  const retriesOf = async (id: string) =>
    (await client.list({ limit: 100 })).runs.filter(({ retry_of: of }) => of === id);
  for (const id of lost) {
    await becomes(client, id).toBe('failed');
    expect(await client.get(id)).toMatchObject({ error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' } });
    const retries = await retriesOf(id);
    expect(retries).toHaveLength(1);
    await becomes(client, retries[0]?.run_id ?? '').toBe('running');
    await proves(client, id);
  }
  // Every other host has checked meanwhile.
  for (const id of lost) expect(await retriesOf(id)).toHaveLength(1);
  for (const { run_id: id, status } of (await client.list({ limit: 100 })).runs)
    if (status === 'running' || status === 'queued') await client.cancel(id);
});
