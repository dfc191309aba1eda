// Checks docs/internals/security.md: each named test exists, each dependency is listed, and the systemd unit is valid.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createRoot } from '../support/orchestrated.js';

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
// Undoes the formatting of Markdown: joins wrapped list items and removes the padding of table cells.
const readPage = (path: string): string =>
  read(path)
    .replaceAll(/\n {2,}(?=\S)/g, ' ')
    .replaceAll(/ {2,}/g, ' ');
const PAGE = readPage('docs/internals/security.md');
// Whether the file has a test of that name; the formatter may move the name to a line of its own.
const hasTest = (file: string, name: string): boolean =>
  ["'", '"', '`'].some((quote) => read(file).replaceAll(/\(\s+/g, '(').includes(`(${quote}${name}${quote},`));
const UNPLAYED =
  /\b(?:test|it|describe)(?:\.\w+)*\.(?:skip|skipIf|runIf|todo|only|fails)\b|\b(?:xit|xtest|xdescribe)\(/;
// The lines with restrictions, whatever score a version of systemd would give them.
const WALLS = [
  'User=parley',
  'UMask=0077',
  'StateDirectoryMode=0700',
  'KillMode=mixed',
  'NoNewPrivileges=yes',
  'CapabilityBoundingSet=',
  'AmbientCapabilities=',
  'ProtectSystem=strict',
  'ProtectHome=yes',
  'PrivateTmp=yes',
  'PrivateDevices=yes',
  'ProtectProc=invisible',
  'ProtectClock=yes',
  'ProtectHostname=yes',
  'ProtectKernelTunables=yes',
  'ProtectKernelModules=yes',
  'ProtectKernelLogs=yes',
  'ProtectControlGroups=yes',
  'LockPersonality=yes',
  'RestrictRealtime=yes',
  'RestrictSUIDSGID=yes',
  'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK',
  'SystemCallArchitectures=native',
];
// The newest of them is ProtectProc.
const FIRST_WITH_ALL = 247;
const CLAIMS = [...PAGE.matchAll(/^- `(tests\/[^`]+)`: (.+)$/gm)].map(
  ([, file = '', name = '']) => [file, name] as const,
);

test('each test that the page names is there, under that name', () => {
  expect(CLAIMS.length).toBeGreaterThan(50);
  for (const [file, name] of CLAIMS) {
    expect(existsSync(join(ROOT, file)), file).toBe(true);
    expect(hasTest(file, name), `${file}: ${name}`).toBe(true);
    // A skipped test proves nothing, nor do those that `only` excludes.
    expect(read(file).match(UNPLAYED), file).toBeNull();
  }
  // Every named file as well.
  for (const [, path = ''] of PAGE.matchAll(/`((?:tests|scripts|src|examples|docs)\/[\w./-]+)`/g))
    expect(existsSync(join(ROOT, path)), path).toBe(true);
  for (const [, path = ''] of PAGE.matchAll(/\]\(([\w./-]+)(?:#[\w-]+)?\)/g))
    expect(existsSync(join(ROOT, 'docs/internals', path)), path).toBe(true);
});

test.each(['docs/internals/security.md', 'docs/internals/torture.md', 'docs/internals/fuzz.md'])(
  'findings name tests that exist: %s',
  (page) => {
    const text = readPage(page);
    const rows = [
      ...text.slice(text.indexOf('## What it found')).matchAll(/^\| [^|]+ \| `(tests\/[^`]+)`: (.+) \|$/gm),
    ];
    expect(rows.length).toBeGreaterThan(5);
    for (const [, file = '', name = ''] of rows) {
      expect(hasTest(file, name), `${file}: ${name}`).toBe(true);
      expect(read(file).match(UNPLAYED), file).toBeNull();
    }
  },
);

test('every finding of the audit is listed with a test that exists', () => {
  const rows = [...PAGE.matchAll(/^\| ([SCU]\d+(?:, [SCU]\d+)*) \| [^|]+ \| [^|]+ \| `(tests\/[^`]+)`: (.+) \|$/gm)];
  const findings = rows.flatMap(([, names = '']) => names.split(', '));
  expect(findings).toEqual(expect.arrayContaining(Array.from({ length: 19 }, (_, index) => `S${index + 1}`)));
  for (const [, , file = '', name = ''] of rows) {
    expect(hasTest(file, name), `${file}: ${name}`).toBe(true);
  }
});

test('each threat has a test', () => {
  const threats = PAGE.slice(PAGE.indexOf('## Who, what'), PAGE.indexOf('## What holds')).split(/^### /m).slice(1);
  expect(threats.length).toBeGreaterThan(10);
  for (const threat of threats)
    expect(threat.match(/^- `tests\//gm)?.length ?? 0, threat.split('\n')[0]).toBeGreaterThan(0);
});

test('every dependency is listed with its purpose, and no other', () => {
  const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
  const table = PAGE.slice(PAGE.indexOf('| dependency |'), PAGE.indexOf('## What holds'));
  expect([...table.matchAll(/^\| `([^`]+)` \| \S/gm)].map(([, name]) => name)).toEqual(Object.keys(dependencies));
});

const UNIT = read('examples/parley.service');

test('the unit file has all its restrictions, and allows the work', () => {
  for (const line of WALLS) expect(UNIT.split('\n')).toContain(line);
  // These would break the sandbox of Codex, or stop Node.
  expect(UNIT).not.toMatch(/^(?:RestrictNamespaces|SystemCallFilter|MemoryDenyWriteExecute)=/m);
});

test('the unit file is one that systemd takes', ({ skip }) => {
  const version = Number(
    /^systemd (\d+)/.exec(spawnSync('systemd-analyze', ['--version'], { encoding: 'utf8' }).stdout ?? '')?.[1] ?? 0,
  );
  skip(
    version < FIRST_WITH_ALL,
    version === 0
      ? 'there is no systemd-analyze here'
      : `systemd ${version} does not know all that the unit file says; ${FIRST_WITH_ALL} does`,
  );
  const path = join(createRoot(), 'parley.service');
  // An existing program, because systemd looks for it.
  writeFileSync(path, UNIT.replace('/usr/local/bin/parley', process.execPath));
  const { stdout, stderr, error } = spawnSync('systemd-analyze', ['verify', '--man=no', path], { encoding: 'utf8' });
  expect(error).toBeUndefined();
  // Messages about other units or the machine are not about our unit.
  expect(`${stdout}${stderr}`.split('\n').filter((line) => line.includes('parley.service'))).toEqual([]);
});
