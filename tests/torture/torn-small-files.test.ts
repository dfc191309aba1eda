// Small files beside the runs, torn: cut in half, empty, or zeros. The next process restores them or names the damaged
// file. torn.test.ts checks that they are replaced atomically; here they are torn nevertheless.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'smol-toml';
import { describe, expect, onTestFinished, test } from 'vitest';
import { lockAgent } from '../../src/app-server/agent-lock.js';
import { CodexHome } from '../../src/machine/homes/codex-home.js';
import { buildHandle, findEngine } from '../../src/engines/registry.js';
import { copySession } from '../../src/machine/sessions/copy-session.js';
import { prepareHome } from '../../src/machine/homes/prepare-home.js';
import { siteAt } from '../../src/store/postgres/hosts/site.js';
import { TurnRefusedError } from '../../src/run/turn-refused-error.js';
import { createRoot } from '../support/orchestrated.js';

const TEARS: readonly (readonly [string, (bytes: Buffer) => Buffer])[] = [
  ['cut in half', (bytes) => bytes.subarray(0, bytes.length >> 1)],
  ['empty', () => Buffer.alloc(0)],
  ['zeros', (bytes) => Buffer.alloc(bytes.length)],
  ['half of it zeros', (bytes) => Buffer.from(bytes).fill(0, bytes.length >> 1)],
];

function put(path: string, content: string | Buffer): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}

// Returns the previous content.
function tearFile(path: string, tear: (bytes: Buffer) => Buffer): Buffer {
  const whole = readFileSync(path);
  expect(whole.length).toBeGreaterThan(0);
  writeFileSync(path, tear(whole));
  return whole;
}

// Its error when it refused; null: it did not refuse.
async function refusalOf(work: () => unknown): Promise<string | null> {
  try {
    await work();
    return null;
  } catch (error) {
    const code = error instanceof TurnRefusedError ? error.error.code : (error as { code?: string }).code;
    return `${code}: ${(error as Error).message}`;
  }
}

describe.each(TEARS)('%s', (how, tear) => {
  const settings =
    'model = "mine"\napproval_policy = "untrusted"\n[mcp_servers.one]\ncommand = "x"\n[mcp_servers.one.env]\nA = "b"\n';
  const userIn = (root: string) => {
    put(join(root, 'user/.codex/config.toml'), settings);
    return { home: join(root, 'user'), env: {} };
  };

  test('config.toml in the home of a run: the settings of the user again, or the file is named', async () => {
    const root = createRoot();
    const [user, home] = [userIn(root), join(root, 'home')];
    const prepare = () =>
      prepareHome(findEngine('codex'), {
        user,
        home,
        ask: null,
        resumed: null,
        permission: 'workspace-write',
        cwd: root,
        project: root,
      });
    await prepare();
    const config = join(home, '.codex/config.toml');
    const whole = tearFile(config, tear);
    const refused = await refusalOf(prepare);
    if (how === 'empty') expect([refused, readFileSync(config)]).toEqual([null, whole]);
    else expect(refused).toBe(`ENGINE_SETTINGS_INVALID: ${config} cannot be read as TOML. Fix it, or move it away.`);
  });

  test('config.toml in the home of an app-server: the same', async () => {
    const root = createRoot();
    const [user, home] = [userIn(root), join(root, 'home')];
    const open = () => CodexHome.open(home, { owner: join(root, 'agent'), user });
    await open();
    const config = join(home, 'config.toml');
    const whole = tearFile(config, tear);
    const refused = await refusalOf(open);
    if (how === 'empty')
      expect([refused, parse(readFileSync(config, 'utf8'))]).toEqual([null, parse(whole.toString())]);
    else
      expect(refused).toBe(
        `bad_options: ${join(root, 'user/.codex/config.toml')} or ${config} cannot be read as TOML: fix it, or ` +
          'move it away',
      );
  });

  test('the claim on a home of Codex: its owner has it again', async () => {
    const root = createRoot();
    const [user, home, owner] = [userIn(root), join(root, 'home'), join(root, 'agents', 'one')];
    await CodexHome.open(home, { owner, user });
    const whole = tearFile(join(home, 'parley-instance'), tear);
    await CodexHome.open(home, { owner, user });
    expect(readFileSync(join(home, 'parley-instance'))).toEqual(whole);
  });

  test('the note of who has an instance: the lock counts, and the next owner writes it anew', async () => {
    const folder = createRoot();
    const first = await lockAgent(folder, 4711);
    onTestFinished(first);
    const whole = tearFile(join(folder, 'owner'), tear);
    await expect(lockAgent(folder, 4712)).rejects.toMatchObject({
      code: 'in_use',
      message: expect.stringMatching(/is in use by (?:process 47|another process)$/),
    });
    first();
    const second = await lockAgent(folder, 4711);
    expect(readFileSync(join(folder, 'owner'))).toEqual(whole);
    second();
  });

  test('the name of the disk among hosts: no other is taken for it, the file is named', async () => {
    const data = createRoot();
    const { site } = siteAt(data, 'host');
    const file = join(data, 'site');
    const whole = tearFile(file, tear);
    expect(await refusalOf(() => siteAt(data, 'host'))).toMatch(
      new RegExp(`^DATA_DIR_UNUSABLE: ${file} is damaged\\. .*parley\\.runs`),
    );
    writeFileSync(file, whole);
    expect(siteAt(data, 'host')).toEqual({ site, place: data });
  });

  test('the copy that a fork begins with: it is copied again, or there is nothing to begin with', async () => {
    const root = createRoot();
    const id = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd551';
    const place = `.codex/sessions/2026/11/16/rollout-2026-11-16T05-49-15-${id}.jsonl`;
    const lines = `${JSON.stringify({ type: 'session_meta', payload: { id } })}\n${'{"n":1}\n'.repeat(20)}`;
    const source = put(join(root, 'source', place), lines);
    const copy = () =>
      copySession(
        buildHandle(findEngine('codex'), id, { cwd: root, home: join(root, 'source'), attempt: 1 }),
        join(root, 'target'),
      );
    expect(await copy()).toBe(true);
    tearFile(join(root, 'target', place), tear);
    expect([await copy(), readFileSync(join(root, 'target', place), 'utf8')]).toEqual([true, lines]);
    // The source itself: the complete lines that are left of it, if any.
    tearFile(source, tear);
    const isSome = how.includes('half');
    expect(await copy()).toBe(isSome);
    const copied = readFileSync(join(root, 'target', place), 'utf8');
    expect([lines.startsWith(copied), copied === '' || copied.endsWith('\n'), copied !== '']).toEqual([
      true,
      true,
      isSome,
    ]);
  });
});
