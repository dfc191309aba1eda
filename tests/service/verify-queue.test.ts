// Checks of runs wait in a bounded queue, in which one caller takes only a few places.
import { expect, test } from 'vitest';
import { VerifyQueue } from '../../src/service/evidence/verify-queue.js';

const LIMITS = { total: 4, perCaller: 2 };
const pending = () => new AbortController().signal;
// Runs until it is aborted.
const endless = (_runId: string, signal: AbortSignal) =>
  new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
const codeOf = (check: Promise<unknown>) =>
  check.then(
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
  const checks = ['run_1', 'run_1', 'run_2', 'run_2'].map((runId) => queue.check(runId, 'a', pending()));
  await expect.poll(() => started).toEqual(['run_1']);
  finish[0]?.();
  await expect.poll(() => started).toEqual(['run_1', 'run_2']);
  finish[1]?.();
  expect((await Promise.all(checks)).map(([check]) => check?.finding)).toEqual(['run_1', 'run_1', 'run_2', 'run_2']);
  expect(started).toHaveLength(2);
});

test('one caller has a limited number of checks, others still get theirs, and joining a check is free', async () => {
  const queue = new VerifyQueue(endless, LIMITS);
  const checks = [queue.check('run_1', 'a', pending()), queue.check('run_2', 'a', pending())].map(codeOf);
  expect(await codeOf(queue.check('run_3', 'a', pending()))).toBe('TOO_MANY_REQUESTS');
  checks.push(
    codeOf(queue.check('run_3', 'b', pending())),
    codeOf(queue.check('run_3', 'a', pending())),
    codeOf(queue.check('run_4', 'b', pending())),
  );
  expect(await codeOf(queue.check('run_5', 'c', pending()))).toBe('TOO_MANY_REQUESTS');
  await queue.close();
  expect(new Set(await Promise.all(checks))).toEqual(new Set(['SHUTTING_DOWN']));
});

test('a caller that has left before its check begins takes no place', async () => {
  const queue = new VerifyQueue(endless, LIMITS);
  for (const id of ['run_1', 'run_2', 'run_3'])
    expect(await codeOf(queue.check(id, 'a', AbortSignal.abort()))).toBe('SHUTTING_DOWN');
  const check = codeOf(queue.check('run_4', 'a', pending()));
  await queue.close();
  expect(await check).toBe('SHUTTING_DOWN');
});
