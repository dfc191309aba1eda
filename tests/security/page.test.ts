// The page of threats cannot lie: each test that it names is there, each dependency is told, and its unit file is one.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createRoot } from '../support/orchestrated.js';

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const PAGE = read('docs/security.md');
const CLAIMS = [...PAGE.matchAll(/^- `(tests\/[^`]+)`: (.+)$/gm)].map(([, file = '', name = '']) => [file, name] as const);

test('each test that the page names is there, under that name', () => {
  expect(CLAIMS.length).toBeGreaterThan(50);
  for (const [file, name] of CLAIMS) {
    expect(existsSync(join(ROOT, file)), file).toBe(true);
    expect(['\'', '"', '`'].some((quote) => read(file).includes(`(${quote}${name}${quote}, `)), `${file}: ${name}`).toBe(true);
  }
  // Every file that is spoken of, too.
  for (const [, path = ''] of PAGE.matchAll(/`((?:tests|scripts|src|examples|docs)\/[\w./-]+)`/g)) expect(existsSync(join(ROOT, path)), path).toBe(true);
  for (const [, path = ''] of PAGE.matchAll(/\]\(([\w./-]+)(?:#[\w-]+)?\)/g)) expect(existsSync(join(ROOT, 'docs', path)), path).toBe(true);
});

test('each threat has a test', () => {
  const threats = PAGE.slice(PAGE.indexOf('## Who, what'), PAGE.indexOf('## What holds')).split(/^### /m).slice(1);
  expect(threats.length).toBeGreaterThan(10);
  for (const threat of threats) expect(threat.match(/^- `tests\//gm)?.length ?? 0, threat.split('\n')[0]).toBeGreaterThan(0);
});

test('every dependency is told with what it is for, and no other', () => {
  const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
  const table = PAGE.slice(PAGE.indexOf('| dependency |'), PAGE.indexOf('## What holds'));
  expect([...table.matchAll(/^\| `([^`]+)` \| \S/gm)].map(([, name]) => name)).toEqual(Object.keys(dependencies));
});

test('the unit file is one that systemd takes, and shuts what it says', () => {
  const unit = read('examples/parley.service');
  for (const line of ['User=parley', 'UMask=0077', 'NoNewPrivileges=yes', 'ProtectSystem=strict', 'ProtectHome=yes', 'StateDirectoryMode=0700', 'KillMode=mixed']) expect(unit.split('\n')).toContain(line);
  // These would take Codex its sandbox, or stop Node.
  expect(unit).not.toMatch(/^(?:RestrictNamespaces|SystemCallFilter|MemoryDenyWriteExecute)=/m);
  if (!existsSync('/usr/bin/systemd-analyze')) return;
  const path = join(createRoot(), 'parley.service');
  // A program that is there: it is looked for.
  writeFileSync(path, unit.replace('/usr/local/bin/parley', process.execPath));
  expect(execFileSync('systemd-analyze', ['verify', '--man=no', path], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })).toBe('');
  // At most 5.0 of 10; it ends with an error above.
  expect(execFileSync('systemd-analyze', ['security', '--offline=true', '--threshold=50', '--no-pager', path], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })).toContain('Overall exposure level');
});
