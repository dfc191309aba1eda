// A long stream and a long line pass through the built command in bounded memory.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { PROFILES, recordedShape } from '../../bench/recorded-shapes.mjs';

const MB = 1024 * 1024;
// Bare Node takes about 45 MB; one line of 16 MiB may be held, decoded (two bytes a character) and escaped.
const LIMIT = 320 * MB;
const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const reportPeak = fileURLToPath(new URL('../support/report-peak.mjs', import.meta.url));

interface Outcome {
  readonly code: number | null;
  readonly peak: number;
  readonly received: number;
  readonly last: string;
}

async function parse(engine: string, args: string[], chunks: Iterable<Buffer>): Promise<Outcome> {
  const child = spawn(process.execPath, ['--import', reportPeak, main, 'parse', '--engine', engine, ...args], {
    stdio: ['pipe', 'pipe', 'inherit', 'pipe'],
  });
  const stdin = child.stdin as Writable;
  const stdout = child.stdout as Readable;
  const peakPipe = child.stdio[3];
  let received = 0;
  let tail = Buffer.alloc(0);
  let peak = '';
  stdout.on('data', (chunk: Buffer) => {
    received += chunk.length;
    tail = Buffer.concat([tail, chunk]).subarray(-64 * 1024);
  });
  (peakPipe as Readable).on('data', (chunk: Buffer) => (peak += chunk.toString()));
  const closed = once(child, 'close');
  for (const chunk of chunks) if (!stdin.write(chunk)) await once(stdin, 'drain');
  stdin.end();
  const [code] = (await closed) as [number | null];
  return {
    code,
    peak: Number.parseInt(peak, 10),
    received,
    last: tail.toString('utf8').trimEnd().split('\n').at(-1) ?? '',
  };
}

function* repeat(chunk: Buffer, bytes: number): Generator<Buffer> {
  for (let sent = 0; sent < bytes; sent += chunk.length) yield chunk;
}

function checkOutcome(label: string, outcome: Outcome): void {
  console.log(`${label}: peak ${Math.round(outcome.peak / MB)} MB, ${Math.round(outcome.received / MB)} MB of events`);
  expect(outcome.code).toBe(0);
  expect((JSON.parse(outcome.last) as { event: { type: string } }).event.type).toBe('lifecycle.state.changed');
  expect(outcome.peak).toBeGreaterThan(20 * MB);
  expect(outcome.peak).toBeLessThan(LIMIT);
}

test.each([...PROFILES, 'iflow'])('200 MB of %s output pass in bounded memory', async (engine) => {
  const chunk =
    engine === 'iflow'
      ? Buffer.from('The agent says one more line of text, 说了一行。\n'.repeat(20_000))
      : recordedShape(engine, MB).stream;
  checkOutcome(`200 MB of ${engine}`, await parse(engine, [], repeat(chunk, 200 * MB)));
});

test.each([...PROFILES, 'iflow'])('a single line of 64 MB of %s passes in bounded memory', async (engine) => {
  const outcome = await parse(engine, [], repeat(Buffer.alloc(MB, 'x'), 64 * MB));
  checkOutcome(`a line of 64 MB for ${engine}`, outcome);
  expect(outcome.received).toBeGreaterThan(64 * MB);
});

test('a message of 3 MB in one line is one message, not pieces', async () => {
  const item = { id: 'item_1', type: 'agent_message', text: '漢字 and words '.repeat(200_000) };
  const line = Buffer.from(`${JSON.stringify({ type: 'item.completed', item })}\n`);
  const outcome = await parse('codex', ['--stats'], [line]);
  expect(outcome.code).toBe(0);
  expect(JSON.parse(outcome.last)).toMatchObject({ units: 1, parsed: 1, fallbacks: 0, hit_rate: 1 });
});

test('an endless echo on stderr is counted, not kept', async () => {
  const said = JSON.stringify({ type: 'item.completed', item: { id: 'item_1', type: 'agent_message', text: 'x' } });
  const dir = mkdtempSync(join(tmpdir(), 'parley-echo-'));
  const stderr = join(dir, 'stderr.log');
  writeFileSync(stderr, 'x\n'.repeat(2_000_000));
  const outcome = await parse('codex', ['--fcmp', '--stderr', stderr], [Buffer.from(`${said}\n`)]);
  rmSync(dir, { recursive: true });
  expect(outcome.code).toBe(0);
  expect(outcome.peak).toBeLessThan(LIMIT);
  expect(outcome.received).toBeLessThan(10_000);
});
