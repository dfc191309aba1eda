// The mode of `parley run`: a flag, else defaults.mode of config.json, else the terminal.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { chooseMode, type ModeFlags } from '../../src/cli/conversation/choose-mode.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-mode-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function choose(flags: ModeFlags, isTerminal: boolean): string {
  const terminal = { stdin: isTerminal, stdout: isTerminal, stderr: isTerminal, columns: () => 80, rows: () => 24 };
  return chooseMode(flags, dir, { terminal });
}

test('without a setting the terminal decides, and a flag overrides it', () => {
  expect([choose({}, true), choose({}, false)]).toEqual(['interactive', 'auto']);
  expect([choose({ auto: true }, true), choose({ interactive: true }, false)]).toEqual(['auto', 'interactive']);
});

test.each(['interactive', 'auto'])(
  'defaults.mode %s overrides the terminal, and a flag overrides the setting',
  (mode) => {
    writeFileSync(join(dir, 'config.json'), JSON.stringify({ defaults: { mode } }));
    expect([choose({}, true), choose({}, false)]).toEqual([mode, mode]);
    expect([choose({ auto: true }, true), choose({ interactive: true }, false)]).toEqual(['auto', 'interactive']);
  },
);

test.each(['{', '[]', '{"defaults":[]}', '{"defaults":{"mode":"ask"}}'])(
  'a file that cannot be used (%s) is left to the worker to refuse',
  (text) => {
    writeFileSync(join(dir, 'config.json'), text);
    expect([choose({}, true), choose({}, false)]).toEqual(['interactive', 'auto']);
  },
);

test('a folder in place of the file changes nothing', () => {
  mkdirSync(join(dir, 'config.json'));
  expect(choose({}, true)).toBe('interactive');
});
