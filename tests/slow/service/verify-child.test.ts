// GET …/verify on a real server: the check runs in a separate process and has the same result as the command.
import { appendFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { verifyInChild } from '../../../src/cli/serving/verify-child.js';
import { runFolder } from '../../../src/journal/run-folder.js';
import { systemTimers } from '../../../src/process/timers.js';
import { createSite, parley, type Site } from '../../support/command.js';
import { startServer } from '../../support/served-process.js';

test('a check over HTTP says what parley verify says, of a sound and of a changed run', async () => {
  const site = createSite();
  const server = await startServer(site);
  const create = async () => {
    const { run_id: id } = await server.client.create({ engine: 'rehearsal', prompt: '[[events 20 50]][[done 1]]' });
    await expect.poll(async () => (await server.client.get(id)).status).toBe('succeeded');
    return id;
  };
  const [sound, changed] = [await create(), await create()];
  appendFileSync(runFolder(site.data, changed).attempt(1).logs.stdout, 'more\n');
  for (const [id, ok] of [
    [sound, true],
    [changed, false],
  ] as const) {
    const { stdout } = await parley(site, ['verify', id, '--json']);
    const { checks } = JSON.parse(stdout) as { checks: object[] };
    expect(await server.client.verify(id)).toEqual({ run_id: id, ok, checks });
  }
  const missing = await fetch(`${server.url}/v1/runs/run_${'0'.repeat(26)}/verify`, {
    headers: { authorization: `Bearer ${server.token}` },
  });
  expect([missing.status, ((await missing.json()) as { error: { code: string } }).error.code]).toEqual([
    404,
    'RUN_NOT_FOUND',
  ]);
  server.child.kill('SIGTERM');
  expect((await server.ended).code).toBe(0);
});

// As the server starts it.
function checkIn(site: Site, heapMb?: number) {
  const machine = { node: process.execPath, entry: fileURLToPath(new URL('../../../bin/parley.js', import.meta.url)) };
  return verifyInChild(site.data, { machine: machine as never, env: site.env, timers: systemTimers }, heapMb);
}

test('a check that does not fit into its memory is refused with the way out', async () => {
  const site = createSite();
  const id = JSON.parse(
    (await parley(site, ['run', 'rehearsal', '[[done 1]]', '--json'])).stdout.split('\n')[0] ?? '',
  ) as { run_id?: string; run?: { run_id: string } };
  const runId = id.run_id ?? id.run?.run_id ?? '';
  expect((await checkIn(site)(runId, new AbortController().signal)).every(({ ok }) => ok)).toBe(true);
  await expect(checkIn(site, 4)(runId, new AbortController().signal)).rejects.toMatchObject({
    code: 'VERIFY_FAILED',
    message: expect.stringContaining(`parley verify ${runId}`) as string,
  });
});

test('a check that is aborted ends its process', async () => {
  const site = createSite();
  await parley(site, ['run', 'rehearsal', '[[done 1]]']);
  const abort = new AbortController();
  const checking = checkIn(site)('run_1', abort.signal);
  abort.abort();
  await expect(checking).rejects.toMatchObject({
    code: 'VERIFY_FAILED',
    message: expect.stringContaining('was stopped') as string,
  });
});
