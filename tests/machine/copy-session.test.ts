// The files of a session that are copied into the home of a fork.
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { buildHandle, findEngine } from '../../src/engines/registry.js';
import { copySession } from '../../src/machine/sessions/copy-session.js';

const [FIRST, SECOND, THIRD] = ['1', '2', '3'].map((digit) => `01a1e065-6fe8-7fd2-a5f7-dea3d46cd55${digit}`) as [
  string,
  string,
  string,
];
const roots: string[] = [];
afterAll(() => {
  for (const root of roots) rmSync(root, { recursive: true, force: true });
});

function createHomes(): { source: string; target: string } {
  const root = mkdtempSync(join(tmpdir(), 'parley-copy-'));
  roots.push(root);
  return { source: join(root, 'source'), target: join(root, 'target') };
}

const placeOf = (id: string) => `.codex/sessions/2026/11/16/rollout-2026-11-16T05-49-15-${id}.jsonl`;

function write(home: string, id: string, text: string): string {
  const path = join(home, placeOf(id));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode: 0o644 });
  return path;
}

const meta = (id: string, base?: string) => {
  const payload = { id, ...(base === undefined ? {} : { history_base: { thread_id: base } }) };
  return `${JSON.stringify({ type: 'session_meta', payload })}\n`;
};

function copy(home: string, id: string, target: string, engine = 'codex'): Promise<boolean> {
  return copySession(buildHandle(findEngine(engine), id, { cwd: '/srv/work', home, attempt: 1 }), target);
}

const filesIn = (home: string) =>
  readdirSync(home, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name.slice(-41, -6))
    .toSorted();

test.each(['codex', 'codex-app-server'])(
  'the session of a %s run is copied to the other home, private, and nothing else',
  async (engine) => {
    const { source, target } = createHomes();
    const path = write(source, FIRST, `${meta(FIRST)}{"n":1}\n`);
    write(source, SECOND, meta(SECOND));
    writeFileSync(join(source, '.codex', 'auth.json'), 'secret');
    expect(await copy(source, FIRST, target, engine)).toBe(true);
    const copied = join(target, placeOf(FIRST));
    expect(readFileSync(copied)).toEqual(readFileSync(path));
    expect(filesIn(target)).toHaveLength(1);
    expect(statSync(copied).mode & 0o777).toBe(0o600);
    for (let folder = dirname(copied); folder !== dirname(target); folder = dirname(folder))
      expect(statSync(folder).mode & 0o777).toBe(0o700);
    // Two files from here on.
    appendFileSync(path, '{"n":2}\n');
    expect(readFileSync(copied, 'utf8')).not.toContain('"n":2');
  },
);

test.each([10, 64 * 1024 - 1, 64 * 1024, 200_000])(
  'a line of %d bytes that is still being written is left out',
  async (length) => {
    const { source, target } = createHomes();
    const whole = `${meta(FIRST)}{"n":1}\n`;
    write(source, FIRST, whole + 'x'.repeat(length));
    expect(await copy(source, FIRST, target)).toBe(true);
    expect(readFileSync(join(target, placeOf(FIRST)), 'utf8')).toBe(whole);
  },
);

test('a session that is not there, or of which no line is whole, is not copied', async () => {
  const { source, target } = createHomes();
  expect(await copy(source, FIRST, target)).toBe(false);
  for (const text of ['', '{"type":"session_meta"']) {
    write(source, FIRST, text);
    expect(await copy(source, FIRST, target)).toBe(false);
  }
  expect(
    await copySession(buildHandle(findEngine('codex'), FIRST, { cwd: '/srv/work', home: null, attempt: 1 }), target),
  ).toBe(false);
});

test('the source of a forked session is copied with it, and reported when it is missing', async () => {
  const { source, target } = createHomes();
  const first = write(source, FIRST, meta(FIRST));
  // Its first line is long, with the whole text for the model.
  const payload = { base_instructions: 'x'.repeat(150_000), history_base: { thread_id: FIRST } };
  write(source, SECOND, `${JSON.stringify({ type: 'session_meta', payload })}\n{}\n`);
  write(source, THIRD, meta(THIRD, SECOND));
  expect(await copy(source, THIRD, target)).toBe(true);
  expect(filesIn(target)).toHaveLength(3);
  rmSync(first);
  expect(await copy(source, THIRD, join(target, 'again'))).toBe(false);
});

test('sessions that refer to each other are copied once', async () => {
  const { source, target } = createHomes();
  write(source, FIRST, meta(FIRST, SECOND));
  write(source, SECOND, meta(SECOND, FIRST));
  expect(await copy(source, FIRST, target)).toBe(true);
  expect(filesIn(target)).toHaveLength(2);
});
