// Runs of any size are checked and shown in memory that does not grow with their events or logs. PARLEY_LARGE_RUNS=1
// uses a million events and a log of 1 GB instead of the short forms.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { VerifyProgress } from '../../src/audit/verify-run.js';
import { createSite, parley, type Site } from '../support/command.js';
import { startServer } from '../support/served-process.js';

const IS_LARGE = process.env['PARLEY_LARGE_RUNS'] === '1';
const LIMIT_MS = 20 * 60_000;
const MIB = 1024 * 1024;
// All events of the short form are about 200 MB as objects: a command that keeps them runs out of this heap.
const HEAP_MB = 64;
const MAX_RSS_MIB = 300;
const bin = fileURLToPath(new URL('../../bin/parley.js', import.meta.url));
const reportPeak = fileURLToPath(new URL('../support/report-peak.mjs', import.meta.url));
const reportStalls = new URL('../support/report-stalls.mjs', import.meta.url).href;

const RUNS = [
  ['many events', IS_LARGE ? '[[events 1000000 40]]' : '[[events 100000 40]]', IS_LARGE ? 1_000_000 : 100_000],
  ['long logs', IS_LARGE ? '[[events 16384 65536]]' : '[[events 1000 65536]]', IS_LARGE ? 16_384 : 1000],
] as const;

interface Measured {
  readonly code: number | null;
  readonly bytes: number;
  readonly tail: string;
  readonly peakMib: number;
  readonly cpuMs: number;
}

// Runs a command with a small heap. `readBytes`: closes its output after so many bytes.
async function measure(site: Site, args: readonly string[], readBytes = Infinity): Promise<Measured> {
  const began = performance.now();
  const child = spawn(process.execPath, [`--max-old-space-size=${HEAP_MB}`, '--import', reportPeak, bin, ...args], {
    cwd: site.cwd,
    env: { ...site.env },
    stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
  });
  let bytes = 0;
  let tail = '';
  let report = '';
  const stdout = child.stdout as Readable;
  stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    tail = (tail + chunk.toString()).slice(-4000);
    if (bytes >= readBytes) stdout.destroy();
  });
  (child.stdio[3] as Readable).on('data', (chunk: Buffer) => (report += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.once('close', (status) => resolve(status)));
  const [peak = NaN, cpuMs = NaN] = report.split(' ').map(Number);
  const measured = { code, bytes, tail, peakMib: Math.round(peak / MIB), cpuMs };
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.info(
    `parley ${args[0]}: ${seconds} s, ${cpuMs} ms of CPU, peak ${measured.peakMib} MiB, ` +
      `${Math.round(bytes / MIB)} MiB printed`,
  );
  return measured;
}

async function playRun(site: Site, prompt: string): Promise<string> {
  const { code } = await parley(site, ['run', 'rehearsal', `${prompt}[[done 1]]`]);
  expect(code).toBe(0);
  const { stdout } = await parley(site, ['ls', '--json']);
  return (JSON.parse(stdout.split('\n')[0] ?? '') as { run: { run_id: string } }).run.run_id;
}

test.each(RUNS)(
  'a run with %s is checked and shown in constant memory',
  async (_size, prompt, events) => {
    const site = createSite();
    const id = await playRun(site, prompt);
    const verified = await measure(site, ['verify', id, '--json']);
    expect(verified).toMatchObject({ code: 0, tail: expect.stringContaining('"ok":true') as string });
    expect(verified.tail).toContain('events without a gap');
    const replayed = await measure(site, ['replay', id, '--json']);
    expect(replayed).toMatchObject({ code: 0, tail: expect.stringContaining('"ok":true') as string });
    const shown = await measure(site, ['show', id]);
    const watched = await measure(site, ['watch', id, '--no-follow', '--json']);
    const printed = await measure(site, ['replay', id, '--print']);
    expect([shown.code, watched.code, printed.code]).toEqual([0, 0, 0]);
    expect(watched.bytes).toBe(printed.bytes);
    expect(watched.bytes).toBeGreaterThan(events * 100);
    const head = await measure(site, ['show', id], 100);
    expect(head.code).toBe(0);
    // The rest of the conversation is not rendered. Both include the start of the program.
    expect(head.cpuMs).toBeLessThan(shown.cpuMs / 2);
    for (const { peakMib } of [verified, replayed, shown, watched, printed, head])
      expect(peakMib).toBeLessThan(MAX_RSS_MIB);
  },
  LIMIT_MS,
);

test(
  'a check over HTTP reports its progress, is shared, and does not stall the server',
  async () => {
    const site = createSite();
    const id = await playRun(site, RUNS[0][1]);
    const stalls = join(site.root, 'stalls.jsonl');
    const server = await startServer(site, ['--port', '0'], {
      env: { NODE_OPTIONS: `--import ${reportStalls}`, PARLEY_STALLS: stalls },
    });
    await server.client.list();
    const startedAt = Date.now();
    const reports: VerifyProgress[] = [];
    const began = performance.now();
    const [first, second] = await Promise.all([
      server.client.verify(id, { onProgress: (progress) => reports.push(progress) }),
      server.client.verify(id),
    ]);
    console.info(`over HTTP: ${((performance.now() - began) / 1000).toFixed(1)} s, ${reports.length} reports`);
    expect(first).toMatchObject({ run_id: id, ok: true });
    expect(second).toEqual(first);
    expect(reports.length).toBeGreaterThan(0);
    for (const { events, total_events: total } of reports) expect(events).toBeLessThanOrEqual(total);
    const found = existsSync(stalls) ? readFileSync(stalls, 'utf8').trimEnd().split('\n') : [];
    const long = found
      .map((line) => JSON.parse(line) as { readonly at: number; readonly ms: number; readonly cpu: number })
      // A machine that is busy with other processes stops this one as well: then it used no CPU.
      .filter(({ at, cpu }) => at > startedAt && cpu > 50);
    expect(long).toEqual([]);
    server.child.kill('SIGTERM');
    expect((await server.ended).code).toBe(0);
  },
  LIMIT_MS,
);
