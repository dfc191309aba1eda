// Objects that an agent plants in the folder of its run, or a repository in its own, do not block readers: the server
// keeps responding.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readAsks } from '../../src/ask/ask-file.js';
import { findLogin } from '../../src/machine/logins/find-login.js';
import { buildHandle, findEngine } from '../../src/engines/registry.js';
import { checkWorkspace } from '../../src/machine/homes/check-workspace.js';
import { copySession } from '../../src/machine/sessions/copy-session.js';
import { hasSession } from '../../src/machine/sessions/find-session.js';
import { prepareHome } from '../../src/machine/homes/prepare-home.js';
import { runFolder, type RunFolder } from '../../src/journal/run-folder.js';
import { createRoot } from '../support/orchestrated.js';
import { linkFolder, plant, PLANTS } from '../support/planted-files.js';
import { serve, type Served } from '../support/served.js';

let served: Served;
beforeAll(async () => {
  served = await serve();
});
afterAll(() => served.close());

interface Verification {
  readonly ok: boolean;
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly finding: string }[];
}

async function ended(
  prompt = '[[answer x]][[done {"n":1}]]',
): Promise<{ readonly id: string; readonly folder: RunFolder }> {
  const { run_id: id } = await served.client.create({ engine: 'codex', prompt });
  await served.bench.orchestrator.waitUntilIdle(id);
  return { id, folder: runFolder(served.bench.data.path, id) };
}

async function findingsOf(id: string): Promise<string[]> {
  const [verified, health] = await Promise.all([served.fetch(`/v1/runs/${id}/verify`), served.fetch('/healthz')]);
  expect([verified.status, health.status]).toEqual([200, 200]);
  return ((await verified.json()) as Verification).checks.filter(({ ok }) => !ok).map(({ name }) => name);
}

describe.each(PLANTS)('%s', (what, put) => {
  test('in the place of a log, the result or a journal file is found by verify', async () => {
    for (const [path, names] of [
      ['result.json', ['result']],
      ['attempts/1/stdout.log', ['hashes', 'cover']],
    ] as const) {
      const { id, folder } = await ended();
      await plant(join(folder.path, path), put);
      expect(await findingsOf(id), path).toEqual(expect.arrayContaining([names[0]]));
    }
    // An object that is not a file is replaced, because the database has the content.
    for (const name of ['rasp.jsonl', 'fcmp.jsonl']) {
      const { id, folder } = await ended();
      await plant(join(folder.path, name), put);
      expect(await findingsOf(id), name).toEqual(what.includes('sparse') ? ['files'] : []);
    }
  });

  test('in the place of a log is not sent, and the server answers meanwhile', async () => {
    const { id, folder } = await ended();
    await plant(folder.attempt(1).logs.stdout, put);
    const reading = new AbortController();
    const [logs, health] = await Promise.all([
      served.fetch(`/v1/runs/${id}/logs?byte_to=10`, { signal: reading.signal }),
      served.fetch('/healthz'),
    ]);
    expect([logs.status, health.status]).toEqual([what.includes('sparse') ? 200 : 404, 200]);
    expect(await logs.text()).not.toContain('elsewhere');
  });

  test('in the place of the questions that an agent asked holds no question', async () => {
    const path = join(createRoot(), 'asks.jsonl');
    await plant(path, put);
    expect(await readAsks(path, null)).toEqual({ listed: false, questions: [] });
  });

  test('as opencode.json prevents the start of OpenCode, or is read as its target', async () => {
    const root = createRoot();
    const path = join(root, 'project', 'opencode.json');
    await plant(path, put);
    const checked = checkWorkspace(
      findEngine('opencode'),
      { home: join(root, 'home'), env: {} },
      join(root, 'project'),
    );
    if (what === 'a link to a file') await expect(checked).resolves.toBeUndefined();
    else await expect(checked).rejects.toMatchObject({ error: { code: 'WORKING_FOLDER_UNUSABLE' } });
  });

  test('as a session is no session, and is not copied', async () => {
    const root = createRoot();
    const id = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd551';
    const home = join(root, 'home');
    await plant(join(home, `.codex/sessions/2026/11/16/rollout-2026-11-16T05-49-15-${id}.jsonl`), put);
    const handle = buildHandle(findEngine('codex'), id, { cwd: root, home, attempt: 1 });
    if (what.includes('sparse')) return;
    expect(await hasSession(handle)).toBe(false);
    expect(await copySession(handle, join(root, 'target'))).toBe(false);
  });

  test('as the settings in the home of a run is replaced; as those of the user is refused by name', async () => {
    const root = createRoot();
    const [user, home] = [{ home: join(root, 'user'), env: {} }, join(root, 'home')];
    mkdirSync(user.home);
    const needs = { ask: null, resumed: null, permission: 'full', cwd: root, project: root } as const;
    await plant(join(home, '.codex/config.toml'), put);
    await prepareHome(findEngine('codex'), { user, home, ...needs });
    expect(readFileSync(join(home, '.codex/config.toml'), 'utf8')).not.toContain('elsewhere');
    if (what === 'a link to a file') return;
    await plant(join(user.home, '.codex/config.toml'), put);
    await expect(
      prepareHome(findEngine('codex'), { user, home: join(root, 'second'), ...needs }),
    ).rejects.toMatchObject({ error: { code: 'ENGINE_SETTINGS_INVALID' } });
  });

  test('as a login is no login', async () => {
    const home = createRoot();
    await plant(join(home, '.codex/auth.json'), put);
    expect(findLogin(findEngine('codex'), { home, env: {} })).toBe(
      what === 'a link to a file' ? join(home, '.codex/auth.json') : null,
    );
  });
});

test('a folder of a run that became a link is not read through', async () => {
  const { id, folder } = await ended();
  linkFolder(folder.attempt(1).logs.stdout);
  expect(await findingsOf(id)).toContain('hashes');
  expect((await served.fetch(`/v1/runs/${id}/logs`)).status).toBe(404);
});

test('settings of the user with pipes, devices and links in a circle are copied as far as they are files', async () => {
  const root = createRoot();
  const rules = join(root, 'user/.codex/rules');
  mkdirSync(rules, { recursive: true });
  writeFileSync(join(rules, 'a.rules'), 'a');
  execFileSync('mkfifo', [join(rules, 'pipe.rules')]);
  for (const [name, target] of [
    ['zero.rules', '/dev/zero'],
    ['up', '..'],
    ['self', 'self'],
  ] as const)
    execFileSync('ln', ['-s', target, join(rules, name)]);
  await prepareHome(findEngine('codex'), {
    user: { home: join(root, 'user'), env: {} },
    home: join(root, 'home'),
    ask: null,
    resumed: null,
    permission: 'full',
    cwd: root,
    project: root,
  });
  const copied = readdirSync(join(root, 'home/.codex/rules'));
  expect(copied).toContain('a.rules');
  expect(copied).not.toContain('pipe.rules');
  expect(copied).not.toContain('zero.rules');
});

describe('names that are not UTF-8', () => {
  const odd = Buffer.from([0x63, 0x61, 0x66, 0xe9]);

  test('are listed with their bytes escaped and marked, and are in the archive as they are', async () => {
    const { id, folder } = await ended();
    mkdirSync(folder.workspace, { recursive: true });
    const inside = Buffer.concat([Buffer.from(`${folder.workspace}/`), odd]);
    mkdirSync(inside);
    writeFileSync(Buffer.concat([inside, Buffer.from('/plain.txt')]), 'inside');
    writeFileSync(join(folder.workspace, 'caf\u00e9'), 'text');
    const { files, truncated } = (await (await served.fetch(`/v1/runs/${id}/files`)).json()) as {
      files: { path: string; escaped?: true }[];
      truncated: boolean;
    };
    const listed = files
      .filter(({ path }) => path.startsWith('workspace/'))
      .map(({ path, escaped }) => [path, escaped]);
    expect(listed.toSorted()).toEqual(
      [
        ['workspace/caf\\xE9/plain.txt', true],
        ['workspace/caf\u00e9', undefined],
      ].toSorted(),
    );
    expect(truncated).toBe(false);
    const archive = Buffer.from(await (await served.fetch(`/v1/runs/${id}/archive`)).arrayBuffer());
    const target = createRoot();
    execFileSync('tar', ['-x', '-C', target], { input: archive });
    const unpacked = Buffer.concat([Buffer.from(`${target}/${id}/workspace/`), odd, Buffer.from('/plain.txt')]);
    expect(readFileSync(unpacked, 'utf8')).toBe('inside');
  });

  test('that are longer than a tar header allows are in the archive', async () => {
    const { id, folder } = await ended();
    mkdirSync(folder.workspace, { recursive: true });
    const long = Buffer.concat([odd, Buffer.from('x'.repeat(150))]);
    writeFileSync(Buffer.concat([Buffer.from(`${folder.workspace}/`), long]), 'long');
    const target = createRoot();
    execFileSync('tar', ['-x', '-C', target], {
      input: Buffer.from(await (await served.fetch(`/v1/runs/${id}/archive`)).arrayBuffer()),
    });
    expect(readFileSync(Buffer.concat([Buffer.from(`${target}/${id}/workspace/`), long]), 'utf8')).toBe('long');
  });
});

describe('files that were deleted outside of Parley', () => {
  test('logs of a deleted folder return FILES_GONE; a run without output has none', async () => {
    const { id, folder } = await ended();
    expect((await served.fetch(`/v1/runs/${id}/logs`)).status).toBe(200);
    rmSync(folder.path, { recursive: true });
    const answer = await served.fetch(`/v1/runs/${id}/logs`);
    expect([answer.status, ((await answer.json()) as { error: { code: string } }).error.code]).toEqual([
      410,
      'FILES_GONE',
    ]);
    const waiting = await served.client.create({
      engine: 'codex',
      prompt: '[[ask Which?]]',
      execution_mode: 'interactive',
    });
    await served.bench.orchestrator.waitUntilIdle(waiting.run_id);
    rmSync(runFolder(served.bench.data.path, waiting.run_id).path, { recursive: true });
    expect((await served.fetch(`/v1/runs/${waiting.run_id}/logs`)).status).toBe(410);
  });

  test('journal files that were removed are written anew when somebody asks for the files', async () => {
    const { id, folder } = await ended();
    for (const name of ['rasp.jsonl', 'fcmp.jsonl']) rmSync(join(folder.path, name));
    expect(await findingsOf(id)).toEqual([]);
    rmSync(join(folder.path, 'rasp.jsonl'));
    expect((await served.fetch(`/v1/runs/${id}/files`)).status).toBe(200);
    expect(existsSync(join(folder.path, 'rasp.jsonl'))).toBe(true);
  });
});
