// The lines of a check over HTTP: the first one at once, later ones also while nothing happens, and the whole error.
import { expect, test } from 'vitest';
import { refusal } from '../../src/run/request-error.js';
import { explain } from '../../src/service/api/error-envelope.js';
import { checkAsLines, LINE_MS, type VerifyLine } from '../../src/service/evidence/verify-lines.js';
import { VerifyQueue, type VerifyRun } from '../../src/service/evidence/verify-queue.js';
import { verifyLine } from '../../src/service/schemas.js';
import { Gate } from '../support/gate.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

const RUN = `run_${'0'.repeat(26)}`;
const OTHER = `run_${'0'.repeat(25)}1`;
const PROGRESS = { events: 1, total_events: 2, log_bytes: 0, total_log_bytes: 0 };

function start(verify: VerifyRun) {
  const timers = new SimulatedTimers();
  const queue = new VerifyQueue(verify, { total: 4, perCaller: 2 });
  const leave = new AbortController();
  const received: VerifyLine[] = [];
  const open = () => {
    const lines = checkAsLines(queue, RUN, { key: 'a', left: leave.signal }, { timers, explain });
    lines.on('data', (bytes: Buffer) => {
      for (const line of bytes.toString().trimEnd().split('\n')) received.push(verifyLine.parse(JSON.parse(line)));
    });
    return lines;
  };
  return { timers, queue, leave, received, open };
}

test('a check that waits says so at once and again, and then repeats its progress while it is silent', async () => {
  const gates = new Map([RUN, OTHER].map((runId) => [runId, new Gate()]));
  const started = new Gate();
  const { timers, queue, received, open } = start(async (runId, _signal, onProgress) => {
    if (runId === RUN) {
      onProgress?.(PROGRESS);
      started.open();
    }
    await gates.get(runId)?.opened;
    return [];
  });
  const first = queue.check(OTHER, { key: 'b', left: new AbortController().signal });
  const ended = new Promise((resolve) => open().once('end', resolve));
  await expect.poll(() => received).toEqual([{ type: 'waiting', checks_before: 1 }]);
  timers.advance(2 * LINE_MS);
  const waiting = { type: 'waiting', checks_before: 1 };
  await expect.poll(() => received).toEqual([waiting, waiting, waiting]);
  gates.get(OTHER)?.open();
  await first;
  await started.opened;
  timers.advance(LINE_MS);
  const progress = { type: 'progress', ...PROGRESS };
  await expect.poll(() => received.slice(3)).toEqual([progress, progress]);
  gates.get(RUN)?.open();
  await ended;
  expect(received.slice(5)).toEqual([{ type: 'result', run_id: RUN, ok: true, checks: [] }]);
  expect(timers.lengths()).toEqual([]);
});

test('the error of a check is sent whole', async () => {
  const error = refusal('VERIFY_FAILED', { run: RUN, reason: 'it needs more memory' });
  const { received, open } = start(async () => Promise.reject(error));
  await new Promise((resolve) => open().once('end', resolve));
  const { code, message, values } = error;
  expect(received.at(-1)).toEqual({ type: 'error', error: { code, message, values } });
  expect(values).toEqual({ run: RUN, reason: 'it needs more memory' });
});

test('nothing is written for a caller that has left', async () => {
  const gate = new Gate();
  const { timers, queue, leave, open } = start(async () => gate.opened.then(() => []));
  const lines = open();
  const shared = queue.check(RUN, { key: 'b', left: new AbortController().signal });
  lines.destroy();
  leave.abort();
  timers.advance(10 * LINE_MS);
  expect(timers.lengths()).toEqual([]);
  gate.open();
  await shared;
});

test('a refused check throws at once', () => {
  const { queue, open } = start(() => new Promise(() => {}));
  for (const runId of ['run_1', 'run_2']) void queue.check(runId, { key: 'a', left: new AbortController().signal });
  expect(open).toThrow(expect.objectContaining({ code: 'TOO_MANY_REQUESTS' }));
});
