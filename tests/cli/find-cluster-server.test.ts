// Which of the hosts a command goes to: the nearest one that answers as one of them.
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { firstToAnswer, orderHosts } from '../../src/cli/find-cluster-server.js';
import { systemTimers } from '../../src/process/timers.js';

async function listen(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const host = (name: string, site: string | null) => ({ name, site });
const says = (status: number, text: string) => listen((_request, response) => void response.writeHead(status).end(text));

test('a host of this machine comes first, then one with the files of this directory, then any in their order', () => {
  const [any, files, here, both, other] = [host('x', null), host('y', 's1'), host('desk', null), host('desk', 's1'), host('z', 's2')];
  expect(orderHosts([any, files, here, both, other], { name: 'desk', site: 's1' })).toEqual([both, here, files, any, other]);
  // A directory that has no name is not that of hosts which share theirs.
  expect(orderHosts([other, any], { name: 'desk', site: null })).toEqual([other, any]);
});

test('one that is silent, away, not ready, another program, another host or leads elsewhere is passed over', async () => {
  const asked: string[] = [];
  const good = await listen((request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    response.end('{"status":"ok","host_id":"host_1"}');
  });
  const bad = [
    await listen(() => {}),
    'http://127.0.0.1:1',
    'not an address',
    await says(200, ''),
    await says(200, 'null'),
    await says(200, '{"status":"ok"}'),
    await says(200, '{"status":"ok","host_id":"host_of_another_database"}'),
    await says(503, '{"status":"ok","host_id":"host_1"}'),
    await listen((_request, response) => void response.writeHead(302, { location: `${good}/readyz` }).end()),
  ];
  const known = new Set(['host_1', 'host_2']);
  expect(await firstToAnswer([...bad, `${good}/`], known, systemTimers)).toBe(`${good}/`);
  // No token was sent: it is not known yet who answers.
  expect(asked).toEqual(['GET /readyz undefined']);
  expect(await firstToAnswer(bad.slice(1), known, systemTimers)).toBeNull();
  expect(await firstToAnswer([], known, systemTimers)).toBeNull();
});
