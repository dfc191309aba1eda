// A data directory that changes under Parley or cannot be written: nothing is acknowledged that would be lost, and
// reading still works.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { RunRecord } from '../../src/store/store.js';
import { change, flush, newRun, T0 } from '../store/conformance.js';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import { createSite, parley, type Site } from '../support/command.js';
import { createRoot } from '../support/orchestrated.js';
import { startServer } from '../support/served-process.js';

const GONE = { code: 'DATA_DIR_UNUSABLE' };

describe('a database whose files are taken away', () => {
  const WAYS: [string, (path: string) => void][] = [
    ['is deleted', (path) => rmSync(join(path, 'parley.db'))],
    [
      'is deleted with all files beside it',
      (path) =>
        readdirSync(path)
          .filter((name) => name.startsWith('parley.db'))
          .forEach((name) => rmSync(join(path, name))),
    ],
    ['loses its log', (path) => rmSync(join(path, 'parley.db-wal'))],
    [
      'is replaced by a copy',
      (path) => {
        copyFileSync(join(path, 'parley.db'), join(path, 'copy'));
        renameSync(join(path, 'copy'), join(path, 'parley.db'));
      },
    ],
  ];

  test.each(WAYS)('%s: no write is acknowledged any more', async (_way, takeAway) => {
    const path = join(createRoot(), 'data');
    const { store, close } = await openDataDir(path, { pid: process.pid });
    const created = await store.createRun(newRun(1));
    store.checkUsable?.();
    takeAway(path);
    await expect(store.createRun(newRun(2))).rejects.toMatchObject(GONE);
    await expect(
      store.append(change((created as { run: RunRecord }).run, { journal: flush(3, 1, null) })),
    ).rejects.toMatchObject(GONE);
    expect(() => store.checkUsable?.()).toThrow('deleted or replaced');
    await close();
  });

  test('that is put back is used again', async () => {
    const path = join(createRoot(), 'data');
    const { store, close } = await openDataDir(path, { pid: process.pid });
    const { run } = (await store.createRun(newRun(1))) as { run: RunRecord };
    const append = () => store.append(change(run, { journal: flush(run.heads.rasp_seq + 1, 1, null, T0 + 1_000_000) }));
    renameSync(join(path, 'parley.db'), join(path, 'away'));
    await expect(store.createRun(newRun(2))).rejects.toMatchObject(GONE);
    await expect(append()).rejects.toMatchObject(GONE);
    renameSync(join(path, 'away'), join(path, 'parley.db'));
    // A refused write was not stored.
    expect(await store.loadRun('run_0002')).toBeNull();
    expect(await append()).toMatchObject({ committed: true });
    expect(await store.createRun(newRun(3))).toMatchObject({ created: true });
    await close();
  });

  test('a server refuses new runs and says that it is not ready', async () => {
    const site = createSite();
    const server = await startServer(site);
    const { run_id: id } = await server.client.create({ engine: 'rehearsal', prompt: '[[done 1]]' });
    await expect.poll(async () => (await server.client.get(id)).status).toBe('succeeded');
    rmSync(join(site.data, 'parley.db'));
    const call = async (path: string, init: RequestInit = {}) => {
      const response = await fetch(`${server.url}${path}`, {
        ...init,
        headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
      });
      return [response.status, ((await response.json()) as { error?: { code: string } }).error?.code];
    };
    expect(
      await call('/v1/runs', { method: 'POST', body: JSON.stringify({ engine: 'rehearsal', prompt: 'x' }) }),
    ).toEqual([500, 'DATA_DIR_UNUSABLE']);
    expect(await call('/readyz')).toEqual([500, 'DATA_DIR_UNUSABLE']);
    expect(await call('/healthz')).toEqual([200, undefined]);
    server.child.kill('SIGTERM');
    expect((await server.ended).stderr).toContain('was deleted or replaced while Parley was using it');
  });
});

// Null: nothing can be mounted here.
function mountData({ data }: Site): ((options: string) => void) | null {
  mkdirSync(data, { mode: 0o700 });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m,mode=700', 'tmpfs', data], { stdio: 'pipe' });
  } catch {
    return null;
  }
  onTestFinished(() => void execFileSync('umount', ['-l', data]));
  return (options) => void execFileSync('mount', ['-o', `remount,${options}`, data]);
}

const READS = [
  ['ls'],
  ['ls', '--json'],
  ['show', 'last'],
  ['show', 'last', '--json'],
  ['watch', 'last', '--no-follow'],
  ['verify', 'last'],
  ['verify', '--all'],
  ['logs', 'last'],
];

test.for(['as a command leaves it', 'as a server leaves it'])(
  'on a read-only file system runs are listed, shown, watched and checked, %s',
  async (left, { skip }) => {
    const site = createSite();
    const remount = mountData(site);
    if (!remount) return skip('no file system can be mounted here');
    expect((await parley(site, ['run', 'rehearsal', 'Say hello'])).code).toBe(0);
    if (left === 'as a server leaves it') {
      const server = await startServer(site);
      server.child.kill('SIGTERM');
      await server.ended;
      expect(existsSync(join(site.data, 'parley.db-wal'))).toBe(false);
    }
    // Its worker may still be ending.
    await expect
      .poll(() => {
        try {
          remount('ro');
          return 'read-only';
        } catch (error) {
          return String(error);
        }
      })
      .toBe('read-only');
    for (const args of READS) {
      const { code, stderr } = await parley(site, args);
      expect([args.join(' '), code, stderr]).toEqual([args.join(' '), 0, '']);
    }
    const refused = await parley(site, ['run', 'rehearsal', 'Say hello']);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('cannot be used')]);
  },
);

test('a log on a read-only file system is read, or reported as unreadable', async ({ skip }) => {
  const site = createSite();
  const remount = mountData(site);
  if (!remount) return skip('no file system can be mounted here');
  const server = await startServer(site);
  const { run_id: id } = await server.client.create({ engine: 'rehearsal', prompt: '[[done 1]]' });
  await expect.poll(async () => (await server.client.get(id)).status).toBe('succeeded');
  server.child.kill('SIGKILL');
  await server.ended;
  remount('ro');
  const { stdout } = await parley(site, ['ls', '--json']);
  expect(stdout).toContain(id);
  remount('rw');
  rmSync(join(site.data, 'parley.db-shm'));
  remount('ro');
  const { code, stderr } = await parley(site, ['ls']);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/read-only file system.*parley\.db-wal.*--data/s)]);
});

test.each(['', 'relative/home', '.'])('with HOME="%s" nothing is created, and the ways out are named', async (home) => {
  const site = createSite();
  const env = { ...site.env, HOME: home, PARLEY_DATA: '', XDG_DATA_HOME: '' };
  const before = readdirSync(site.cwd);
  for (const args of [['run', 'rehearsal', 'Say hello'], ['ls'], ['serve', '--port', '0'], ['doctor']]) {
    const { code, stderr, stdout } = await parley({ ...site, env }, args);
    expect(code, args.join(' ')).not.toBe(0);
    expect(stderr + stdout, args.join(' ')).toMatch(/HOME is ".*--data or PARLEY_DATA/s);
  }
  expect(readdirSync(site.cwd)).toEqual(before);
});
