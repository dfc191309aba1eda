// Checks the layout: imports between folders, access to the process, and that the documented paths exist.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { REQUEST_MESSAGES } from '../src/contract/error-codes.js';
import { ENGINES } from '../src/engines/registry.js';
import { RULES } from '../src/run/judge-completion.js';

const root = new URL('..', import.meta.url).pathname;
// From the bottom up: a folder imports only folders before it.
const ROOMS = [
  'kernel',
  'contract',
  'messages',
  'files',
  'rehearsal',
  'jsonrpc',
  'run',
  'schema-check',
  'rasp',
  'fcmp',
  'ask',
  'terminal',
  'process',
  'engines',
  'settings',
  'store',
  'machine',
  'app-server',
  'ownership',
  'dispatch',
  'journal',
  'turn',
  'commands',
  'recovery',
  'audit',
  'orchestrator',
  'hooks',
  'client',
  'service',
  'cli',
  'main.ts',
];
// Two programs, and a library that others start: only these touch the process that they run in.
const ENTRIES = new Set(['main.ts', 'rehearsal/main.ts', 'app-server/index.ts']);
const PURE = new Set(['kernel', 'contract', 'messages', 'jsonrpc', 'run', 'rasp', 'fcmp']);

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

test('the rehearsal imports nothing that starts a process or opens a connection', () => {
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

test('only the journal appends events, and only applyRunEvent takes an edge of the chart', () => {
  const outside = files.filter((file) => !file.startsWith('store/'));
  const using = (pattern: RegExp) => outside.filter((file) => pattern.test(withoutComments(source(file)))).toSorted();
  expect(using(/\bstore\.append\b/)).toEqual(['journal/apply-run-event.ts', 'turn/turn-writer.ts']);
  // Matches the calls as text, so no code may take the method out of the store.
  expect(using(/\bstore\.append\b(?!\()|\['append'\]/)).toEqual([]);
  // The event of a change of state is created in one place. The other caller reads recordings and stores nothing.
  expect(using(/\btakeEdge\(/)).toEqual([
    'audit/read-recording.ts',
    'journal/apply-run-event.ts',
    'journal/take-edge.ts',
  ]);
  expect(using(/draft\(\s*'lifecycle\.state\.changed'/)).toEqual(['journal/take-edge.ts']);
  // The store writes the status from the folded state alone.
  const updates = files.filter((file) => /UPDATE (?:parley\.)?runs\s+SET status/.test(source(file)));
  expect(updates.toSorted()).toEqual(['store/postgres/append-run.ts', 'store/sqlite/change-rows.ts']);
});

function withoutComments(text: string): string {
  return text.replace(/^\s*\/\/.*$/gm, '');
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
    'docs/internals/judgement.md',
    'docs/internals/rehearsal.md',
    'docs/reference/webhooks.md',
    'docs/internals/scale.md',
    'docs/internals/codex-app-server.md',
    'docs/reference/events-rasp.md',
    'docs/reference/events-fcmp.md',
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

test('docs/internals/judgement.md has the rules in their order, and every reason code', () => {
  const page = readFileSync(join(root, 'docs/internals/judgement.md'), 'utf8');
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

const withoutContract = files
  .filter((file) => !file.startsWith('contract/'))
  .map(source)
  .join('\n');

test('every diagnostic and request code of the contract is used somewhere in the source', () => {
  const unused = Object.entries(ERRORS)
    .filter(([, { kind }]) => kind !== undefined && kind !== 'run')
    .filter(([code]) => !withoutContract.includes(`'${code}'`) && !withoutContract.includes(`'${code}.`))
    .map(([code]) => code);
  expect(unused).toEqual([]);
});

test('every message of a refused call is used somewhere in the source', () => {
  // access.ts combines the names of these.
  const used = new Set(['UNAUTHORIZED.bad_token', 'UNAUTHORIZED.bad_session', 'UNAUTHORIZED.bad_code']);
  const unused = Object.keys(REQUEST_MESSAGES).filter(
    (name) => !withoutContract.includes(`'${name}'`) && !used.has(name),
  );
  expect(unused).toEqual([]);
});
