// The recording of an agent that another process took over: the former owner can no longer write to anyone's files.
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { lockAgent } from '../../src/app-server/agent-lock.js';
import { detachRecording, Recording } from '../../src/process/recording.js';

let dir = '';
const paths = () => ({
  requests: join(dir, 'requests.jsonl'),
  events: join(dir, 'events.jsonl'),
  stderr: join(dir, 'stderr.log'),
});
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-recording-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

test('after a detach, recorded lines stay, the former owner adds none, and the next owner appends', async () => {
  const former = await Recording.open(paths());
  former.events.append(Buffer.from('{"n":1}\n'));
  await detachRecording(paths());
  const next = await Recording.open(paths());
  former.events.append(Buffer.from('{"late":1}\n'));
  former.stderr.append(Buffer.from('late\n'));
  former.request('{"late":1}\n');
  next.events.append(Buffer.from('{"n":2}\n'));
  next.request('{"n":3}\n');
  expect([paths().events, paths().stderr, paths().requests].map((path) => readFileSync(path, 'utf8'))).toEqual([
    '{"n":1}\n{"n":2}\n',
    '',
    '{"n":3}\n',
  ]);
  expect(next.events.bytes).toBe(16);
  await Promise.all([former.close(), next.close()]);
  expect(readdirSync(dir).toSorted()).toEqual(['events.jsonl', 'requests.jsonl', 'stderr.log']);
});

test('there is nothing to leave behind where nothing was recorded', async () => {
  await detachRecording(paths());
  expect(readdirSync(dir)).toEqual([]);
});

test('a lock that this very process has is not passed over; a free one is taken silently', async () => {
  let passed = 0;
  const pass = async (): Promise<void> => void (passed += 1);
  const release = await lockAgent(dir, 1, pass);
  await expect(lockAgent(dir, 1, pass)).rejects.toMatchObject({ code: 'in_use' });
  expect(passed).toBe(0);
  // A former owner does not touch the note of the next one.
  writeFileSync(join(dir, 'owner'), '2\n');
  release();
  expect(readFileSync(join(dir, 'owner'), 'utf8')).toBe('2\n');
  (await lockAgent(dir, 1, pass))();
  expect(passed).toBe(0);
});
