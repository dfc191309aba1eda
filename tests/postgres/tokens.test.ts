// Named tokens of hosts that share a database: created once, valid at all of them, and invalid at all soon after they
// are revoked.
import { expect, test } from 'vitest';
import { createClient } from '../../src/client/client.js';
import { parley as run } from '../support/command.js';
import { withHosts } from '../support/hosts.js';

test('a token that was made beside one host is known to all, and to none when it was taken back', async () => {
  const hosts = await withHosts({ files: 'host' });
  const [a, b] = [await hosts.start('a'), await hosts.start('b')];
  const parley = (...args: string[]) =>
    run({ ...hosts.site, env: { ...hosts.site.env, PARLEY_DATABASE_URL: hosts.database.url } }, ['token', ...args]);
  const { stdout, code } = await parley('add', 'bob', '--role', 'viewer');
  expect(code).toBe(0);
  const clients = [a, b].map(({ url }) => createClient({ url, token: stdout.trim() }));
  const known = () =>
    Promise.all(
      clients.map((client) =>
        client.list().then(
          () => true,
          ({ code: why }: { code: string }) => why,
        ),
      ),
    );
  await expect.poll(known, { timeout: 10_000 }).toEqual([true, true]);
  await expect(clients[1]?.create({ engine: 'rehearsal', prompt: 'x' })).rejects.toMatchObject({ code: 'FORBIDDEN' });
  expect((await parley('ls')).stdout).toMatch(/bob\s+viewer/);
  expect(await parley('add', 'bob', '--role', 'viewer')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('There is already a token named "bob"') as string,
  });
  expect(await hosts.database.query('SELECT name FROM parley.tokens WHERE sha256 <> $1', [stdout.trim()])).toEqual([
    { name: 'bob' },
  ]);
  expect((await parley('rm', 'bob')).stdout).toBe('revoked bob\n');
  expect(await parley('rm', 'bob')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('There is no token named "bob"') as string,
  });
  await expect.poll(known, { timeout: 10_000 }).toEqual(['UNAUTHORIZED', 'UNAUTHORIZED']);
});
