// Objects in a workspace that harm its readers, copies or deletion: links, links that appear at the last moment, pipes,
// endless folders. Real files, over a real server.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { removeFolder } from '../../src/journal/remove-folder.js';
import { openInPlace, walkFiles } from '../../src/service/evidence/files-of-run.js';
import { serve, type Served } from '../support/served.js';

const SECRET = 'nobody-else-may-read-this';

let served: Served;
let runId: string;
let workspace: string;
let outside: string;
beforeAll(async () => {
  served = await serve();
  outside = join(served.root, 'outside');
  mkdirSync(outside);
  writeFileSync(join(outside, 'key'), SECRET);
  runId = await ended();
  workspace = workspaceOf(runId);
});
afterAll(() => served.close());

async function ended(): Promise<string> {
  const { run_id: id } = await served.client.create({ engine: 'codex', prompt: '[[answer x]]' });
  await served.bench.orchestrator.waitUntilIdle(id);
  mkdirSync(workspaceOf(id), { recursive: true });
  return id;
}

function workspaceOf(id: string): string {
  return join(served.bench.data.path, 'runs', id, 'workspace');
}

const read = (path: string, id = runId) =>
  served.fetch(`/v1/runs/${id}/files/content?path=${encodeURIComponent(path)}`);

test('a link to a file, a folder, a link, nothing or itself shows nothing of its target', async () => {
  symlinkSync(join(outside, 'key'), join(workspace, 'file'));
  symlinkSync(outside, join(workspace, 'folder'));
  symlinkSync('file', join(workspace, 'again'));
  symlinkSync('nowhere', join(workspace, 'nothing'));
  symlinkSync('itself', join(workspace, 'itself'));
  symlinkSync('../../../token', join(workspace, 'token'));
  symlinkSync('/proc/self/environ', join(workspace, 'environ'));
  for (const path of ['file', 'folder/key', 'again', 'nothing', 'itself', 'token', 'environ']) {
    const answer = await read(`workspace/${path}`);
    expect([403, 404], path).toContain(answer.status);
    expect(await answer.text(), path).not.toContain(SECRET);
  }
  const { files } = (await (await served.fetch(`/v1/runs/${runId}/files`)).json()) as { files: { path: string }[] };
  expect(files.filter(({ path }) => path.startsWith('workspace/'))).toEqual([]);
  const archive = await (await served.fetch(`/v1/runs/${runId}/archive`)).text();
  expect(archive).not.toContain(SECRET);
  expect(archive).not.toContain(served.token);
});

test('a link, a pipe or a folder in the place of a log is not read', async () => {
  const id = await ended();
  const log = join(served.bench.data.path, 'runs', id, 'attempts', '1', 'stdout.log');
  const ask = () => served.fetch(`/v1/runs/${id}/logs`);
  expect((await ask()).status).toBe(200);
  const ways = [
    () => symlinkSync(join(outside, 'key'), log),
    () => execFileSync('mkfifo', [log]),
    () => mkdirSync(log),
  ];
  for (const plant of ways) {
    rmSync(log, { recursive: true });
    plant();
    const answers = await Promise.all([ask(), ask(), ask(), ask()]);
    for (const answer of answers) {
      expect(answer.status).toBe(404);
      expect(await answer.text()).not.toContain(SECRET);
    }
  }
  // A reader that waited for the pipe would block all others.
  expect((await served.fetch(`/v1/runs/${id}/files`)).status).toBe(200);
});

test('a folder swapped for a link at the last moment leads nowhere: only the requested file is opened', async () => {
  const [real, aside] = [join(workspace, 'swap'), join(workspace, 'swap.aside')];
  mkdirSync(real);
  writeFileSync(join(real, 'key'), 'of the run');
  const path = join(real, 'key');
  // Its path was checked; then an agent puts a link there.
  renameSync(real, aside);
  symlinkSync(outside, real);
  expect(readFileSync(path, 'utf8')).toBe(SECRET);
  expect(await openInPlace(path)).toBeNull();
  rmSync(real);
  renameSync(aside, real);
  const whole = await openInPlace(path);
  expect(await whole?.readFile('utf8')).toBe('of the run');
  await whole?.close();
  // The same with an agent that does this in a loop, while a reader runs.
  const stop = new AbortController();
  const swapping = (async () => {
    while (!stop.signal.aborted) {
      renameSync(real, aside);
      symlinkSync(outside, real);
      await turns(2);
      rmSync(real);
      renameSync(aside, real);
      await turns(12);
    }
  })();
  const seen = new Set<string>();
  for (let count = 0; count < 300; count += 1) seen.add(await (await read('workspace/swap/key')).text());
  for (let count = 0; count < 1000; count += 1) {
    const file = await openInPlace(path);
    if (file) seen.add(await file.readFile('utf8'));
    await file?.close();
  }
  stop.abort();
  await swapping;
  expect([...seen].filter((text) => text.includes(SECRET))).toEqual([]);
  expect(seen).toContain('of the run');
});

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

test('readers that go away in the middle, or want only the head, leave no file open', async () => {
  const id = await ended();
  writeFileSync(join(workspaceOf(id), 'large'), '');
  truncateSync(join(workspaceOf(id), 'large'), 64 * 1024 * 1024);
  for (const path of ['files/content?path=workspace/large', 'archive'])
    for (let count = 0; count < 10; count += 1) {
      const leave = new AbortController();
      const { body } = await served.fetch(`/v1/runs/${id}/${path}`, { signal: leave.signal });
      await body?.getReader().read();
      leave.abort();
    }
  expect((await served.fetch(`/v1/runs/${id}/files/content?path=workspace/large`, { method: 'HEAD' })).status).toBe(
    200,
  );
  expect((await served.fetch(`/v1/runs/${id}/logs?byte_from=999999`)).status).toBe(400);
  await expect
    .poll(() => readdirSync('/proc/self/fd').filter((fd) => linkOf(fd).endsWith('/large')), { timeout: 20_000 })
    .toEqual([]);
});

function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return '';
  }
}

test('a pipe, which would be waited for for ever, is no file', async () => {
  execFileSync('mkfifo', [join(workspace, 'pipe')]);
  expect((await read('workspace/pipe')).status).toBe(404);
  expect(await (await served.fetch(`/v1/runs/${runId}/archive`)).text()).not.toContain('workspace/pipe');
});

test('thousands of empty folders are walked with room for other work in between', async () => {
  const many = join(served.root, 'many');
  for (let folder = 0; folder < 2000; folder += 1) mkdirSync(join(many, String(folder)), { recursive: true });
  let others = 0;
  let isWalking = true;
  const other = (): void => {
    others += 1;
    if (isWalking) setImmediate(other);
  };
  other();
  let entries = 0;
  for await (const path of walkFiles(many, '', { onEntry: () => (entries += 1) > 0 })) expect(path).toBe('nothing');
  isWalking = false;
  expect(entries).toBe(2000);
  expect(others).toBeGreaterThan(100);
  // A client that has seen enough stops it.
  let looked = 0;
  for await (const path of walkFiles(many, '', { onEntry: () => (looked += 1) <= 10 })) expect(path).toBe('nothing');
  expect(looked).toBe(11);
});

test('a folder with more in it than anybody looks through is listed as far as that', async () => {
  const id = await ended();
  for (let link = 0; link < 10_001; link += 1) symlinkSync('nowhere', join(workspaceOf(id), String(link)));
  expect(await (await served.fetch(`/v1/runs/${id}/files`)).json()).toMatchObject({ truncated: true });
});

test('folders nested deeper than a path can say are shown as far as they can be, and deleted', async () => {
  const id = await ended();
  const before = process.cwd();
  // Step by step, as an agent can: no call contains the whole path.
  process.chdir(workspaceOf(id));
  try {
    for (let depth = 0; depth < 60; depth += 1) {
      mkdirSync('d'.repeat(200));
      process.chdir('d'.repeat(200));
      // One of them is read-only.
      if (depth === 30) chmodSync('..', 0o500);
    }
    writeFileSync('deep', 'x');
  } finally {
    process.chdir(before);
  }
  for (const path of ['files', 'archive']) expect((await served.fetch(`/v1/runs/${id}/${path}`)).status).toBe(200);
  await served.client.delete(id);
  expect(existsSync(join(served.bench.data.path, 'runs', id))).toBe(false);
  expect(existsSync(join(served.bench.data.path, 'runs', `${id}.deleted`))).toBe(false);
});

test('deleting a run deletes links, not their targets', async () => {
  const id = await ended();
  symlinkSync(outside, join(workspaceOf(id), 'folder'));
  symlinkSync(join(outside, 'key'), join(workspaceOf(id), 'file'));
  mkdirSync(join(workspaceOf(id), 'shut', 'in'), { recursive: true });
  const modeBefore = lstatSync(outside).mode;
  await served.client.delete(id);
  expect(readFileSync(join(outside, 'key'), 'utf8')).toBe(SECRET);
  // A folder that is itself a link is removed as a link.
  symlinkSync(outside, join(served.root, 'link'));
  await removeFolder(join(served.root, 'link'));
  expect([existsSync(join(served.root, 'link')), existsSync(join(outside, 'key')), lstatSync(outside).mode]).toEqual([
    false,
    true,
    modeBefore,
  ]);
});
