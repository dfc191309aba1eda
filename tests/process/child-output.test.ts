import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { ChildEnd } from '../../src/process/child.js';
import type { StreamName } from '../../src/rasp/event.js';
import { desk, fillDisk, Gate, Heard, node, readLog, shell, specOf, start } from './desk.js';

const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex');

async function expectExact({ streams }: ChildEnd): Promise<void> {
  for (const stream of ['stdout', 'stderr'] as const) {
    const log = await readLog(stream);
    expect(streams[stream]).toEqual({ bytes: log.length, sha256: sha256(log) });
  }
}

test('both streams are logged byte for byte, also bytes that are no text', async () => {
  const script =
    'const b = Buffer.from(Array.from({length: 256}, (_, i) => i)); process.stdout.write(b); ' +
    'process.stderr.write(Buffer.from(b).reverse())';
  const end = await (await start(specOf(node(script)))).done;
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
  expect(await readLog('stdout')).toEqual(bytes);
  expect(await readLog('stderr')).toEqual(Buffer.from(bytes.toReversed()));
  await expectExact(end);
});

test('a child that prints nothing has two empty logs', async () => {
  const end = await (await start(specOf(['/bin/true']))).done;
  const empty = { bytes: 0, sha256: sha256('') };
  expect(end.streams).toEqual({ stdout: empty, stderr: empty });
  await expectExact(end);
});

test('a chunk is in its log before any consumer gets it', async () => {
  const heard = { stdout: 0, stderr: 0 };
  const logged: number[] = [];
  const onChunk = (stream: StreamName, chunk: Buffer) => {
    heard[stream] += chunk.length;
    logged.push(readFileSync(join(desk.directory, `${stream}.log`)).length - heard[stream]);
  };
  const script = 'for (let i = 0; i < 200; i++) { console.log("x".repeat(i * 20)); console.error(i) }';
  await (
    await start(specOf(node(script)), { onChunk })
  ).done;
  expect(logged.length).toBeGreaterThan(1);
  expect(new Set(logged)).toEqual(new Set([0]));
});

test('50 MB printed at full speed to a slow handler: the log is exact, and the child is never far ahead', async () => {
  const script =
    'const b = Buffer.alloc(1 << 20, "The quick brown fox.\\n"); for (let i = 0; i < 50; i++) { b[0] = i; for ' +
    '(let at = 0; at < b.length; ) at += fs.writeSync(1, b, at) }';
  let heard = 0;
  let ahead = 0;
  const onChunk = async (_stream: StreamName, chunk: Buffer) => {
    heard += chunk.length;
    for (let turn = 0; turn < 3; turn += 1) await setImmediate();
    ahead = Math.max(ahead, writtenBy(child.pid) - heard);
  };
  const child = await start(specOf(node(script)), { onChunk });
  const end = await child.done;
  const expected = createHash('sha256');
  const block = Buffer.alloc(1 << 20, 'The quick brown fox.\n');
  for (let index = 0; index < 50; index += 1) {
    block[0] = index;
    expected.update(block);
  }
  expect(end).toMatchObject({
    exit: { code: 0 },
    streams: { stdout: { bytes: 50 << 20, sha256: expected.digest('hex') } },
  });
  expect(heard).toBe(50 << 20);
  expect(sha256(await readLog('stdout'))).toBe(end.streams.stdout.sha256);
  expect(ahead).toBeGreaterThan(0);
  expect(ahead).toBeLessThan(2 << 20);
});

// The bytes that a process has written so far, with some of its own housekeeping.
function writtenBy(pid: number): number {
  try {
    return Number(/^wchar: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]);
  } catch {
    return 0;
  }
}

test('while a handler holds one stream, the other one flows', async () => {
  const gate = new Gate();
  const heard = new Heard();
  const onChunk = (stream: StreamName, chunk: Buffer) => {
    heard.onChunk(stream, chunk);
    return stream === 'stdout' ? gate.opened : undefined;
  };
  const child = await start(
    specOf(
      node(
        'process.once("SIGUSR2", () => process.exit(console.error("second"))); console.log("first"); ' +
          'setInterval(() => {}, 1000)',
      ),
    ),
    { onChunk },
  );
  await heard.says('first');
  process.kill(child.pid, 'SIGUSR2');
  await heard.says('second');
  gate.open();
  expect((await child.done).exit.code).toBe(0);
});

test('output that is still unread when the child exits is kept, at the pace of a slow handler', async () => {
  let open = 0;
  let widest = 0;
  let heard = 0;
  const onChunk = async (_stream: StreamName, chunk: Buffer) => {
    open += 1;
    widest = Math.max(widest, open);
    for (let turn = 0; turn < 50; turn += 1) await setImmediate();
    heard += chunk.length;
    open -= 1;
  };
  const child = await start(specOf(shell('head -c 150000 /dev/zero')), { onChunk });
  expect((await child.done).streams.stdout.bytes).toBe(150_000);
  expect({ heard, widest }).toEqual({ heard: 150_000, widest: 1 });
});

test('a child that closes its stdout early and works on is waited for', async () => {
  const heard = new Heard();
  const child = await start(
    specOf(shell('echo early; exec 1>&-; (echo worked > worked); echo late >&2; exit 5')),
    heard,
  );
  expect((await child.done).exit).toEqual({ code: 5, signal: null });
  expect(heard.text).toEqual({ stdout: 'early\n', stderr: 'late\n' });
  expect(readFileSync(join(desk.directory, 'worked'), 'utf8')).toBe('worked\n');
});

test('a child that closes both streams early can still be ended', async () => {
  const heard = new Heard();
  const child = await start(specOf(shell('echo closing; exec 1>&- 2>&-; exec sleep 1000')), heard);
  await heard.says('closing');
  child.end('canceled');
  expect(await child.done).toMatchObject({ endedByUs: 'canceled', streams: { stdout: { bytes: 8 } } });
});

test('sync may be asked for at any time: before the first byte, at once from many, and after the end', async () => {
  const heard = new Heard();
  const child = await start(specOf(shell('echo one; exec sleep 1000')), heard);
  await child.sync();
  await heard.says('one');
  await Promise.all([child.sync(), child.sync(), child.sync()]);
  child.end('shutdown');
  await child.done;
  await child.sync();
});

test('when the exit is reported, the logs are on disk and closed', async () => {
  const child = await start(specOf(shell('echo one; echo two >&2')));
  await child.done;
  expect(logsOpen()).toEqual([]);
  const logs = { stdout: join(desk.directory, 'second.log'), stderr: join(desk.directory, 'other.log') };
  await fillDisk(logs.stdout);
  const refused = await start(specOf(shell('echo one'), { logs }));
  await expect(refused.done).rejects.toMatchObject({ code: 'ENOSPC' });
  expect(logsOpen()).toEqual([]);
});

// The logs of the test that this process has open, if the system reports it.
function logsOpen(): string[] {
  const open = existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd') : [];
  return open
    .flatMap((fd) => (existsSync(`/proc/self/fd/${fd}`) ? [readlinkSync(`/proc/self/fd/${fd}`)] : []))
    .filter((path) => path.startsWith(desk.directory));
}
