// Checks of runs wait in a bounded queue, in which one caller takes only a few places.
import { expect, test } from 'vitest';
import { VerifyQueue } from '../../src/service/evidence/verify-queue.js';

const LIMITS = { total: 4, perCaller: 2 };
// A refusal is thrown at once.
const check = async (queue: VerifyQueue, runId: string, key: string, left = new AbortController().signal) =>
  queue.check(runId, { key, left });
// Runs until it is aborted.
const endless = (_runId: string, signal: AbortSignal) =>
  new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
const codeOf = (checking: Promise<unknown>) =>
  checking.then(
    () => 'ok',
    ({ code }: { code: string }) => code,
  );

test('checks run one at a time, and callers of the same run share the result', async () => {
  const started: string[] = [];
  const finish: (() => void)[] = [];
  const queue = new VerifyQueue((runId) => {
    started.push(runId);
    return new Promise((resolve) => finish.push(() => resolve([{ name: 'digest', ok: true, finding: runId }])));
  }, LIMITS);
  const checks = ['run_1', 'run_1', 'run_2', 'run_2'].map((runId) => check(queue, runId, 'a'));
  await expect.poll(() => started).toEqual(['run_1']);
  finish[0]?.();
  await expect.poll(() => started).toEqual(['run_1', 'run_2']);
  finish[1]?.();
  expect((await Promise.all(checks)).map(([first]) => first?.finding)).toEqual(['run_1', 'run_1', 'run_2', 'run_2']);
  expect(started).toHaveLength(2);
});

test('one caller has a limited number of checks, others still get theirs, and joining a check is free', async () => {
  const queue = new VerifyQueue(endless, LIMITS);
  const checks = [check(queue, 'run_1', 'a'), check(queue, 'run_2', 'a')].map(codeOf);
  expect(await codeOf(check(queue, 'run_3', 'a'))).toBe('TOO_MANY_REQUESTS');
  checks.push(
    codeOf(check(queue, 'run_3', 'b')),
    codeOf(check(queue, 'run_3', 'a')),
    codeOf(check(queue, 'run_4', 'b')),
  );
  expect(await codeOf(check(queue, 'run_5', 'c'))).toBe('TOO_MANY_REQUESTS');
  await queue.close();
  expect(new Set(await Promise.all(checks))).toEqual(new Set(['SHUTTING_DOWN']));
});

test('a caller that has left before its check begins takes no place', async () => {
  const queue = new VerifyQueue(endless, LIMITS);
  for (const id of ['run_1', 'run_2', 'run_3'])
    expect(await codeOf(check(queue, id, 'a', AbortSignal.abort()))).toBe('SHUTTING_DOWN');
  const last = codeOf(check(queue, 'run_4', 'a'));
  await queue.close();
  expect(await last).toBe('SHUTTING_DOWN');
});

test('every caller of a check gets its progress', async () => {
  const progress = { events: 1, total_events: 2, log_bytes: 0, total_log_bytes: 0 };
  const queue = new VerifyQueue(async (_runId, _signal, onProgress) => {
    onProgress?.(progress);
    return [];
  }, LIMITS);
  const reports: object[] = [];
  const caller = { key: 'a', left: new AbortController().signal, onProgress: (each: object) => reports.push(each) };
  await Promise.all([queue.check('run_1', caller), queue.check('run_1', { ...caller }), check(queue, 'run_1', 'b')]);
  expect(reports).toEqual([progress, progress]);
});

test('a caller that has left a check does not count for it, the one that still waits does', async () => {
  const queue = new VerifyQueue(endless, LIMITS);
  const leave = new AbortController();
  const checks = ['run_1', 'run_2'].flatMap((runId) => [
    codeOf(check(queue, runId, 'a', leave.signal)),
    codeOf(check(queue, runId, 'b')),
  ]);
  leave.abort();
  checks.push(codeOf(check(queue, 'run_3', 'a')));
  expect(await codeOf(check(queue, 'run_4', 'b'))).toBe('TOO_MANY_REQUESTS');
  await queue.close();
  expect(new Set(await Promise.all(checks))).toEqual(new Set(['SHUTTING_DOWN']));
});

test('the queue knows how many checks come before one', async () => {
  const queue = new VerifyQueue(endless, LIMITS);
  const leave = new AbortController();
  const checks = [check(queue, 'run_1', 'a', leave.signal), check(queue, 'run_2', 'a'), check(queue, 'run_3', 'b')];
  const before = () => ['run_1', 'run_2', 'run_3'].map((runId) => queue.checksBefore(runId));
  expect(before()).toEqual([0, 1, 2]);
  leave.abort();
  expect(before()).toEqual([0, 0, 1]);
  await queue.close();
  await Promise.allSettled(checks);
});
