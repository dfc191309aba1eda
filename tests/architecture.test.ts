// The layout as a test: who may import whom, who may touch the process, and that the map names what is there.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ENGINES } from '../src/engines/registry.js';
import { RULES } from '../src/run/judge-completion.js';

const root = new URL('..', import.meta.url).pathname;
// From the bottom up: a room imports only rooms before it.
const ROOMS = [
  'kernel',
  'files',
  'rehearsal',
  'contract',
  'jsonrpc',
  'run',
  'schema-check',
  'rasp',
  'fcmp',
  'ask',
  'terminal',
  'process',
  'engines',
  'store',
  'app-server',
  'dispatch',
  'journal',
  'turn',
  'commands',
  'recovery',
  'audit',
  'orchestrator',
  'host',
  'hooks',
  'client',
  'service',
  'cli',
  'main.ts',
];
// Two programs, and a library that others start: they alone touch the process they are in.
const ENTRIES = new Set(['main.ts', 'rehearsal/main.ts', 'app-server/index.ts']);
const PURE = new Set(['kernel', 'contract', 'jsonrpc', 'run', 'rasp', 'fcmp']);

const ERRORS = JSON.parse(readFileSync(join(root, 'contract/errors.json'), 'utf8')) as Record<
  string,
  { kind?: string }
>;

const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.ts'),
);
const source = (file: string) => readFileSync(join(root, 'src', file), 'utf8');
const roomOf = (file: string) => file.split('/')[0] ?? '';
const importsOf = (file: string) =>
  [...source(file).matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map((match) => match[1] ?? '');

test('every file under src belongs to a known room', () => {
  expect([...new Set(files.map(roomOf))].toSorted()).toEqual(ROOMS.toSorted());
});

test('no folder has more files than can be read at a glance', () => {
  const counts = new Map<string, number>();
  for (const file of files) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
  expect([...counts].filter(([, count]) => count > 25)).toEqual([]);
});

describe.each(files)('%s', (file) => {
  test('imports only its own room and rooms below it', () => {
    for (const target of importsOf(file).filter((name) => name.startsWith('.'))) {
      const room = roomOf(relative('/', join('/', file, '..', target)));
      expect(ROOMS.indexOf(room), `${file} imports ${target}`).toBeLessThanOrEqual(ROOMS.indexOf(roomOf(file)));
      expect(ROOMS).toContain(room);
    }
  });

  test('imports nothing from Node if its room is pure', () => {
    if (PURE.has(roomOf(file))) expect(importsOf(file).filter((name) => name.startsWith('node:'))).toEqual([]);
  });

  test('touches the process, the clock and randomness only where it may', () => {
    if (ENTRIES.has(file)) return;
    const uses = [
      ...source(file).matchAll(
        /\bprocess\.(?:env|argv|exit|stdin|stdout|stderr|cwd)\b|\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b/g,
      ),
    ].map((match) => match[0]);
    expect(uses.filter((use) => !(file === 'kernel/clock.ts' && use === 'Date.now'))).toEqual([]);
  });

  test('opens with a comment that says what it promises, and is short enough to say one thing', () => {
    if (file.startsWith('contract/')) return;
    expect(source(file).replace(/^#!.*\n/, '')).toMatch(/^\/\/ /);
    expect(source(file).split('\n').length).toBeLessThanOrEqual(480);
  });
});

test('the rehearsal cannot execute anything: it imports nothing that starts a process or opens a connection', () => {
  const outside = files
    .filter((file) => roomOf(file) === 'rehearsal')
    .flatMap(importsOf)
    .filter((name) => name.startsWith('node:'));
  expect([...new Set(outside)].toSorted()).toEqual([
    'node:crypto',
    'node:fs',
    'node:os',
    'node:path',
    'node:stream/consumers',
    'node:timers/promises',
    'node:util',
  ]);
});

test('each engine folder has the same five files', () => {
  const engines = readdirSync(join(root, 'src/engines'), { withFileTypes: true }).filter((entry) =>
    entry.isDirectory(),
  );
  expect(engines.map((entry) => entry.name).toSorted()).toEqual(ENGINES.map((engine) => engine.name).toSorted());
  for (const engine of engines) {
    const names = readdirSync(join(root, 'src/engines', engine.name));
    for (const name of ['command.ts', 'handle.ts', 'home.ts', 'parser.ts', 'probe.ts']) expect(names).toContain(name);
  }
});

test('no code but the one door writes the status of a run', () => {
  const commits = files
    .filter((file) => !file.startsWith('store/'))
    .flatMap((file) => argumentsOf(source(file), '.commit(').map((change) => ({ file, change })));
  expect(commits.map(({ file }) => file).toSorted()).toEqual([
    'commands/cancel.ts',
    'journal/apply-run-event.ts',
    'turn/turn-writer.ts',
  ]);
  for (const { file, change } of commits.filter(({ file }) => file !== 'journal/apply-run-event.ts')) {
    // Written out, so that all it sets can be read here: the wish to cancel, and nothing else.
    expect(change, file).toMatch(/^\{/);
    const written = change.replace(/expect: \{[^}]*\}/, '');
    expect(written, file).not.toMatch(/\.\.\.|\bstatus\b|\bset\b(?!: \{ cancel_requested: \{[^}]*\} \})/);
  }
  // Nobody hands the store on to somebody who could, or takes the call out of it.
  const taken = files.filter(
    (file) => !file.startsWith('store/') && /\bcommit\b(?!\()|\['commit'\]/.test(withoutComments(source(file))),
  );
  expect(taken).toEqual([]);
  // And the store writes it only where a change says so.
  const updates = files.filter((file) => /UPDATE (?:parley\.)?runs\s+SET status/.test(source(file)));
  expect(updates.toSorted()).toEqual(['store/postgres/commit-run.ts', 'store/sqlite/change-rows.ts']);
});

function withoutComments(text: string): string {
  return text.replace(/^\s*\/\/.*$/gm, '');
}

// What stands between the brackets of each call.
function argumentsOf(text: string, call: string): string[] {
  return text
    .split(call)
    .slice(1)
    .map((rest) => {
      let depth = 1;
      let end = 0;
      for (; depth > 0 && end < rest.length; end += 1) depth += rest[end] === '(' ? 1 : rest[end] === ')' ? -1 : 0;
      return rest.slice(0, end - 1).trim();
    });
}

test('ARCHITECTURE.md has a line for each room, and every path it and the README name exists', () => {
  const architecture = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');
  const rows = [...architecture.matchAll(/^\| `src\/([^`]+)` +\|/gm)].map((match) => match[1]);
  for (const room of ROOMS) expect(rows).toContain(`${room}${room.endsWith('.ts') ? '' : '/'}`);
  const known = new Set(
    readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
      (name) => !/^(node_modules|\.git|dist|\.cache)\//.test(name),
    ),
  );
  for (const page of [
    'ARCHITECTURE.md',
    'README.md',
    'CONTRIBUTING.md',
    'docs/judgement.md',
    'docs/rehearsal.md',
    'docs/webhooks.md',
    'docs/scale.md',
    'docs/codex-app-server.md',
    'docs/protocol/rasp.md',
    'docs/protocol/fcmp.md',
  ]) {
    const text = readFileSync(join(root, page), 'utf8');
    const paths = [...text.matchAll(/`((?:src|tests|scripts|contract|docs|bench)\/[\w./-]+\.\w+)`/g)].map(
      (match) => match[1] ?? '',
    );
    for (const path of paths) expect(known, `${page} names ${path}`).toContain(path);
    for (const [, link] of text.matchAll(/\]\(([^)#:]+)\)/g)) {
      expect(known, `${page} links to ${link}`).toContain(join(page, '..', link ?? '').replace(/\/$/, ''));
    }
  }
});

test('docs/judgement.md has the rules in their order, and every reason code', () => {
  const page = readFileSync(join(root, 'docs/judgement.md'), 'utf8');
  const rows = [...page.matchAll(/^\| \d+ +\| ([^|]+) \|/gm)].map((match) => match[1]?.trim());
  expect(rows).toEqual(RULES.map((rule) => rule.id));
  const code = ['run/judge-completion.ts', ...ENGINES.map(({ name }) => `engines/${name}/parser.ts`)]
    .map(source)
    .join('\n');
  const reasons = new Set(
    [...code.matchAll(/'([A-Z]+_[A-Z_]+)'/g)].map((match) => match[1] ?? '').filter((name) => !(name in ERRORS)),
  );
  for (const reason of reasons) expect(page, reason).toContain(`\`${reason}\``);
});

test('every diagnostic and request code of the contract is used somewhere in the source', () => {
  const all = files
    .filter((file) => !file.startsWith('contract/'))
    .map(source)
    .join('\n');
  const unused = Object.entries(ERRORS)
    .filter(([code, { kind }]) => kind !== undefined && kind !== 'run' && !all.includes(`'${code}'`))
    .map(([code]) => code);
  expect(unused).toEqual([]);
});
