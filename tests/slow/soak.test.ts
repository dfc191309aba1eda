// The short form of the soak (`npm run bench -- soak` is the long one): a server that has run a hundred runs for twenty
// clients has closed every file that it opened, and no client missed an event or received one twice.
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
  // The sample was taken while it ran with its clients.
  expect(samples.length).toBeGreaterThan(2);
  expect(Math.max(...samples.map(({ fds }) => fds))).toBeGreaterThan(summary.fdsBefore + CLIENTS);
});
