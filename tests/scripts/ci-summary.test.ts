// The last line of .ci/run: what counts as passed and as failed.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const SCRIPT = fileURLToPath(new URL('../../scripts/ci-summary.mjs', import.meta.url));

interface Lane {
  readonly exit: number;
  readonly passed?: number;
  readonly failed?: readonly string[];
  // A file that does not load.
  readonly unloaded?: string;
}

function summarize(lanes: Record<string, Lane>): { readonly code: number | null; readonly lines: string[] } {
  const folder = mkdtempSync(join(tmpdir(), 'parley-ci-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [lane, { exit, passed, failed = [], unloaded }] of Object.entries(lanes)) {
    writeFileSync(join(folder, `${lane}.exit`), `${exit}\n`);
    if (passed === undefined) continue;
    const tests = failed.map((fullName) => ({ status: 'failed', fullName, failureMessages: ['Error: no'] }));
    const files = [
      {
        name: 'tests/a.test.ts',
        status: failed.length > 0 ? 'failed' : 'passed',
        message: '',
        assertionResults: tests,
      },
      ...(unloaded ? [{ name: unloaded, status: 'failed', message: 'no such module', assertionResults: [] }] : []),
    ];
    writeFileSync(
      join(folder, `${lane}.json`),
      JSON.stringify({ numPassedTests: passed, numFailedTests: failed.length, testResults: files }),
    );
  }
  const { status, stdout } = spawnSync(process.execPath, [SCRIPT, folder], { encoding: 'utf8' });
  return { code: status, lines: stdout.trimEnd().split('\n') };
}

test('the tests of all lanes are added up', () => {
  expect(summarize({ lint: { exit: 0 }, unit: { exit: 0, passed: 5 }, slow: { exit: 0, passed: 7 } })).toEqual({
    code: 0,
    lines: ['12 passed, 0 failed'],
  });
});

test('failed tests are listed with their lane and file, and so is a file that does not load', () => {
  const { code, lines } = summarize({ unit: { exit: 1, passed: 5, failed: ['a b'], unloaded: 'tests/b.test.ts' } });
  expect(code).toBe(1);
  expect(lines).toContain('failed: unit: tests/a.test.ts: a b');
  expect(lines).toContain('failed: unit: tests/b.test.ts');
  expect(lines.at(-1)).toBe('5 passed, 2 failed');
});

test('a lane that fails without a failed test counts as one failure', () => {
  expect(summarize({ bench: { exit: 3 }, unit: { exit: 0, passed: 5 } })).toEqual({
    code: 1,
    lines: ['failed: lane bench with code 3', '5 passed, 1 failed'],
  });
});

test('a run without any test fails', () => {
  expect(summarize({ lint: { exit: 0 } })).toEqual({ code: 1, lines: ['0 passed, 0 failed'] });
});
