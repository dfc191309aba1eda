// Where a run may work: within the roots of its caller, even if links change, and never in Parley's own directory.
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RunRecord } from '../../src/store/store.js';
import { createSite, parley, start, untilEngine } from '../support/command.js';
import { createRoot, openBench } from '../support/orchestrated.js';
import { startServer } from '../support/served-process.js';
import { serve, type Served } from '../support/served.js';

let served: Served;
let allowed: string;
let outside: string;
beforeAll(async () => {
  served = await serve();
  [allowed, outside] = [join(served.root, 'allowed'), join(served.root, 'outside')];
  mkdirSync(allowed);
  mkdirSync(join(outside, 'inner'), { recursive: true });
});
afterAll(() => served.close());

const post = (body: object) =>
  served.fetch('/v1/runs', {
    method: 'POST',
    body: JSON.stringify({ engine: 'codex', prompt: '[[done 1]]', ...body }),
  });
const codeOf = async (response: Response) => ((await response.json()) as { error?: { code: string } }).error?.code;

describe('workspace_roots', () => {
  test('a link that is changed all the time never lets a run work outside', { timeout: 60_000 }, async () => {
    const [inside, flip, other] = [join(allowed, 'inside'), join(allowed, 'flip'), join(allowed, 'flip.other')];
    mkdirSync(inside);
    symlinkSync(inside, flip);
    symlinkSync(outside, other);
    const stop = new AbortController();
    const flipping = (async () => {
      for (let count = 0; !stop.signal.aborted; count += 1) {
        renameSync(flip, `${flip}.aside`);
        renameSync(other, flip);
        renameSync(`${flip}.aside`, other);
        await turn();
      }
    })();
    const folders = new Set<string>();
    for (let count = 0; count < 60; count += 1) {
      const response = await post({ cwd: flip });
      if (response.status === 201)
        folders.add(
          ((await served.bench.data.store.loadRun(((await response.json()) as RunRecord).run_id)) as RunRecord).spec
            .cwd,
        );
    }
    stop.abort();
    await flipping;
    expect([...folders].filter((folder) => folder !== inside)).toEqual([]);
    expect(folders.size).toBe(1);
  });

  test('are checked for a known request whose run was deleted meanwhile', async () => {
    const first = await post({ cwd: allowed, request_id: 'known-1' });
    const { run_id: id } = (await first.json()) as RunRecord;
    await served.bench.orchestrator.waitUntilIdle(id);
    // While it exists, it is the same run; after its deletion, a new one.
    await served.client.delete(id);
    expect(await codeOf(await post({ cwd: outside, request_id: 'known-1' }))).toBe('PATH_NOT_ALLOWED');
  });

  test('do not reveal whether something outside of them exists', async () => {
    for (const path of [
      outside,
      join(outside, 'inner'),
      join(outside, 'none'),
      join(outside, 'none/deeper'),
      '/etc/passwd',
      '/etc/none',
    ]) {
      const response = await post({ cwd: path });
      expect([response.status, await codeOf(response)], path).toEqual([403, 'PATH_NOT_ALLOWED']);
    }
    expect(await codeOf(await post({ cwd: join(allowed, 'none') }))).toBe('INVALID_ARGUMENT');
  });
});

test('files outside of a run are not found, whether they exist or not', async () => {
  const { run_id: id } = await served.client.create({ engine: 'codex', prompt: '[[done 1]]' });
  await served.bench.orchestrator.waitUntilIdle(id);
  const answers = await Promise.all(
    ['/etc/passwd', '/etc/none', '../../token', '../../none', 'home/.codex', 'none', '../../../outside'].map(
      async (path) => {
        const response = await served.fetch(`/v1/runs/${id}/files/content?path=${encodeURIComponent(path)}`);
        const { error } = (await response.json()) as { error: { code: string; message: string } };
        return [response.status, error.code, error.message.replace(JSON.stringify(path), 'PATH')];
      },
    ),
  );
  expect(new Set(answers.map((answer) => answer.join(' '))).size).toBe(1);
  expect(answers[0]?.slice(0, 2)).toEqual([404, 'NOT_FOUND']);
});

describe('the data directory', () => {
  test('is refused as the folder of a run: itself, anything in it, and below full any folder around it', async () => {
    const root = createRoot();
    const bench = await openBench(root);
    const create = (cwd: string, permission: 'read-only' | 'workspace-write' | 'full' = 'workspace-write') =>
      bench.orchestrator.create({ engine: 'codex', prompt: '[[done 1]]', cwd, permission });
    const { run_id: id } = await bench.orchestrator.create({ engine: 'codex', prompt: '[[done 1]]' });
    const own = await bench.orchestrator.waitUntilIdle(id);
    symlinkSync(bench.data.path, join(root, 'link'));
    for (const path of [
      bench.data.path,
      join(bench.data.path, 'runs'),
      own.spec.home ?? '',
      own.spec.cwd,
      join(root, 'link'),
      join(root, 'link/runs'),
    ]) {
      for (const permission of ['read-only', 'full'] as const)
        await expect(create(path, permission), path).rejects.toMatchObject({ code: 'PATH_NOT_ALLOWED' });
    }
    for (const permission of ['read-only', 'workspace-write'] as const)
      await expect(create(root, permission)).rejects.toMatchObject({ code: 'PATH_NOT_ALLOWED' });
    const full = await create(root, 'full');
    expect(await bench.orchestrator.waitUntilIdle(full.run_id)).toMatchObject({
      status: 'succeeded',
      spec: { cwd: root },
    });
    // One that continues in the folder of another, and is retried there, still may.
    const next = await bench.orchestrator.continueFrom(id, { prompt: '[[done 2]]' });
    await bench.orchestrator.waitUntilIdle(next.run_id);
    expect(await bench.orchestrator.waitUntilIdle((await bench.orchestrator.retry(next.run_id)).run_id)).toMatchObject({
      spec: { cwd: own.spec.cwd },
    });
    await bench.close();
  });

  test('a run whose folder became a link is not tried again where that leads', async () => {
    const root = createRoot();
    const bench = await openBench(root);
    const folder = join(root, 'work');
    mkdirSync(folder);
    const run = await bench.orchestrator.create({ engine: 'codex', prompt: '[[nosession]][[fail]]', cwd: folder });
    await bench.orchestrator.waitUntilIdle(run.run_id);
    renameSync(folder, `${folder}.moved`);
    mkdirSync(join(root, 'elsewhere'));
    symlinkSync(join(root, 'elsewhere'), folder);
    await expect(bench.orchestrator.retry(run.run_id)).rejects.toMatchObject({
      message: expect.stringContaining('now resolves to') as string,
    });
    await bench.close();
  });
});

// A shell changes to the folder, deletes it, and becomes the command.
function gone(site: ReturnType<typeof createSite>) {
  const folder = join(site.root, 'gone');
  mkdirSync(folder);
  return { cwd: folder, through: ['/bin/sh', '-c', 'rmdir "$PWD"; exec "$@"', 'sh'] };
}

describe('from a folder that was deleted', () => {
  test('parley run is refused and says what to do; with an absolute folder, or none, it works', async () => {
    const site = createSite();
    const refused = await parley(site, ['run', 'codex', '[[done 1]]'], gone(site));
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain('The current folder was deleted');
    expect(refused.stderr).toContain('--cwd');
    expect((await parley(site, ['run', 'codex', '[[done 1]]', '--cwd', '.'], gone(site))).stderr).toContain(
      'The current folder was deleted',
    );
    expect((await parley(site, ['run', 'codex', '[[done 1]]', '--cwd', site.cwd], gone(site))).code).toBe(0);
    expect((await parley(site, ['run', 'codex', '[[done 1]]', '--scratch'], gone(site))).code).toBe(0);
    expect((await parley(site, ['ls'], gone(site))).code).toBe(0);
    expect((await parley(site, ['ls', '--data', 'here'], gone(site))).stderr).toContain(
      'The current folder was deleted',
    );
  });

  test.each(['a deleted folder', '/'])(
    'parley serve started in %s lets named tokens work in the home only',
    async (where) => {
      const site = createSite();
      const server = await startServer(site, ['--port', '0'], where === '/' ? { cwd: '/' } : gone(site));
      const token = (await parley(site, ['token', 'add', 'bob', '--role', 'operator'])).stdout.trim();
      const create = (cwd: string) =>
        fetch(`${server.url}/v1/runs`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: JSON.stringify({ engine: 'codex', prompt: '[[done 1]]', cwd }),
        });
      expect((await create('/opt')).status).toBe(403);
      expect((await create('/')).status).toBe(403);
      expect((await create(site.cwd)).status).toBe(403);
      mkdirSync(join(site.env['HOME'] ?? '', 'project'));
      expect((await create(join(site.env['HOME'] ?? '', 'project'))).status).toBe(201);
      server.child.kill('SIGTERM');
      expect((await server.ended).stderr).toContain('workspace_roots');
    },
  );
});

test('the folder of a running turn does not change under a run that is started from it', async () => {
  const site = createSite();
  writeFileSync(join(site.cwd, 'here'), '');
  const run = start(site, ['run', 'codex', '[[hang]]']);
  await untilEngine(site);
  rmSync(site.cwd, { recursive: true });
  run.child.kill('SIGINT');
  expect((await run.ended).code).not.toBe(0);
});
