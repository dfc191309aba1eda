// The golden folders of the rehearsal are recordings of the built program: the prompts of turn.json, run in one session
// with a fixed id, give the same bytes again. With PARLEY_BLESS=1 they are recorded again.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { playRehearsal, type RehearsalTurn } from '../support/rehearsal.js';

interface RecordedTurn {
  readonly exit: RehearsalTurn['exit'];
  readonly resumed_from?: string;
  readonly played: readonly string[];
}

const SESSION = '5ce7e000-0000-4000-8000-000000000001';
const root = new URL('../golden/rehearsal/', import.meta.url).pathname;
const bless = process.env.PARLEY_BLESS === '1';

test.concurrent.each(readdirSync(root))('%s equals the output of the program', async (name) => {
  const dir = join(root, name);
  const turn = JSON.parse(readFileSync(join(dir, 'turn.json'), 'utf8')) as RecordedTurn;
  const last = await playAll(turn.played);
  if (bless) {
    writeFileSync(join(dir, 'stdout.bin'), last.stdout);
    writeFileSync(join(dir, 'stderr.bin'), last.stderr);
  }
  expect(last.stdout.toString('latin1')).toBe(readFileSync(join(dir, 'stdout.bin'), 'latin1'));
  expect(last.stderr.toString('latin1')).toBe(readFileSync(join(dir, 'stderr.bin'), 'latin1'));
  expect(last.exit).toEqual(turn.exit);
  expect(turn.resumed_from).toBe(turn.played.length > 1 ? SESSION : undefined);
});

async function playAll(prompts: readonly string[]): Promise<RehearsalTurn> {
  const home = mkdtempSync(join(tmpdir(), 'parley-rehearsal-'));
  try {
    let last = await playRehearsal(home, ['--new-session', SESSION], prompts[0]);
    for (const prompt of prompts.slice(1)) last = await playRehearsal(home, ['--session', SESSION], prompt);
    return last;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
