// parley doctor with none of the CLIs, with all of them, and with one that is broken.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { ENGINE_PACKAGES } from '../../scripts/install-engines.mjs';

const ENTRY = fileURLToPath(new URL('../../bin/parley.js', import.meta.url));
const BIN = fileURLToPath(new URL('../../.cache/engines/node_modules/.bin', import.meta.url));

const roots: string[] = [];
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true });
});

interface Finding {
  readonly name: string;
  readonly level: string;
  readonly text: string;
}

function doctor(path: string, env: Record<string, string> = {}): Finding[] {
  const root = mkdtempSync(join(tmpdir(), 'parley-doctor-'));
  roots.push(root);
  const { stdout, status } = spawnSync(process.execPath, [ENTRY, 'doctor', '--json'], {
    encoding: 'utf8',
    env: { PATH: path, HOME: root, PARLEY_DATA: join(root, 'data'), ...env },
  });
  expect(status).toBe(0);
  // None of the probed programs has written into the home of the user.
  expect(readdirSync(root)).toEqual([]);
  return (JSON.parse(stdout) as { findings: Finding[] }).findings;
}

const of = (findings: readonly Finding[], name: string) => findings.find((finding) => finding.name === name);

test('with none of the CLIs it says how to get each, and offers the rehearsal', () => {
  const findings = doctor('/nowhere');
  for (const [engine, { name }] of Object.entries(ENGINE_PACKAGES)) {
    expect(of(findings, engine)).toMatchObject({
      level: 'missing',
      text: expect.stringContaining(`${engine} not found: npm install -g ${name}`),
    });
  }
  expect(of(findings, 'rehearsal')).toMatchObject({ level: 'ok' });
});

test('with all engines it prints their versions and that nobody is logged in', () => {
  const findings = doctor(`${BIN}:${dirname(process.execPath)}:/usr/bin:/bin`);
  for (const [engine, { version }] of Object.entries(ENGINE_PACKAGES)) {
    expect(of(findings, engine)).toMatchObject({ level: 'note', text: expect.stringContaining(version) });
    expect(of(findings, engine)?.text).toContain('not logged in');
    expect(of(findings, engine)?.text).toContain(', can continue conversations;');
  }
  // The program itself, not the script that would leave it running.
  expect(of(findings, 'codex')?.text).toContain('/vendor/');
});

test('with a key it says so, without the key', () => {
  // The second variable is passed to Codex under the name of the first (logins.test.ts).
  for (const name of ['CODEX_API_KEY', 'OPENAI_API_KEY']) {
    const findings = doctor(`${BIN}:${dirname(process.execPath)}:/usr/bin:/bin`, { [name]: 'sk-very-secret-1234' });
    expect(of(findings, 'codex')).toMatchObject({ level: 'ok', text: expect.stringContaining(`logged in by ${name}`) });
    expect(JSON.stringify(findings)).not.toContain('sk-very-secret-1234');
  }
});

test('with a broken one it says how it failed', () => {
  const bin = mkdtempSync(join(tmpdir(), 'parley-broken-'));
  roots.push(bin);
  writeFileSync(join(bin, 'codex'), '#!/bin/sh\nexit 7\n', { mode: 0o755 });
  symlinkSync(join(bin, 'gone'), join(bin, 'gemini'));
  const findings = doctor(`${bin}:/usr/bin:/bin`);
  expect(of(findings, 'codex')).toMatchObject({
    level: 'note',
    text: expect.stringContaining('codex --version ended with code 7'),
  });
  expect(of(findings, 'gemini')).toMatchObject({ level: 'missing' });
});
