// The short form of the soak (`npm run bench -- soak` is the long one): a server that has played a hundred runs before
// twenty clients has closed every file that it opened, and nobody missed an event or got one twice.
import { expect, test } from 'vitest';
import soak from '../../bench/lib/soak-server.mjs';

const RUNS = 100;
const CLIENTS = 20;

test(`${RUNS} runs through one server leave no file open and lose no event at ${CLIENTS} clients`, async () => {
  const { samples, summary } = await soak({ runs: RUNS, clients: CLIENTS, quiet: true });
  expect(summary).toMatchObject({
    runs: RUNS,
    clients: CLIENTS,
    asked: RUNS / 5,
    lost: 0,
    duplicate: 0,
    untold: 0,
    reconnects: 0,
  });
  expect(summary.events).toBeGreaterThan(5 * RUNS);
  expect(summary.fdsAfter, summary.verdict).toBeLessThanOrEqual(summary.fdsBefore);
  // It was looked at while it worked, and had its clients then.
  expect(samples.length).toBeGreaterThan(2);
  expect(Math.max(...samples.map(({ fds }) => fds))).toBeGreaterThan(summary.fdsBefore + CLIENTS);
});
