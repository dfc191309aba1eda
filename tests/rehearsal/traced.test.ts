// The records of engines for the tests of several hosts: a turn that runs twice, and an answer that is delivered twice,
// are detected.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { expectNothingTwice, readTrace } from '../support/engine-trace.js';
import { REHEARSAL } from '../support/rehearsal.js';

const PRELOAD = new URL('../support/trace-engine.mjs', import.meta.url).href;

function createHome(): string {
  const home = mkdtempSync(join(tmpdir(), 'parley-traced-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

function play(home: string, file: string, turn: string, prompt: string): void {
  const [node, script] = REHEARSAL;
  const { status, stderr } = spawnSync(node, [script], {
    cwd: home,
    env: { HOME: home, NODE_OPTIONS: `--import=${PRELOAD}`, ENGINE_TRACE: file, PARLEY_TURN: turn },
    input: prompt,
    encoding: 'utf8',
  });
  expect(status, stderr).toBe(0);
}

test('each process of a turn is recorded with its input, including a second one of the turn', () => {
  const home = createHome();
  const file = join(home, 'trace.jsonl');
  play(home, file, 'run_1/1', '[[done 1]]');
  play(home, file, 'run_1/2', 'Yes');
  expect(readTrace(file)).toMatchObject([
    { runId: 'run_1', attempt: 1, input: '[[done 1]]' },
    { runId: 'run_1', attempt: 2, input: 'Yes' },
  ]);
  expect(() => expectNothingTwice(readTrace(file))).not.toThrow();
  play(home, file, 'run_1/2', 'Yes');
  expect(() => expectNothingTwice(readTrace(file))).toThrow('turns with two processes');
});

test('two answers to one request of an engine that stays are seen', () => {
  const home = createHome();
  const file = join(home, 'trace.jsonl');
  const answer = '{"id":0,"result":{"decision":"accept"}}\n';
  const lines = [{ began: ['app-server'] }, { input: '{"id":0,"method":"initialize"}\n' }, { input: answer }].map(
    (line) => `${JSON.stringify({ turn: 'run_1/1', pid: 1, ...line })}\n`,
  );
  writeFileSync(file, lines.join(''));
  expect(() => expectNothingTwice(readTrace(file))).not.toThrow();
  writeFileSync(file, `${JSON.stringify({ turn: 'run_1/1', pid: 1, input: answer })}\n`, { flag: 'a' });
  expect(() => expectNothingTwice(readTrace(file))).toThrow('answered twice in run_1/1');
});
