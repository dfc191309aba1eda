// Errors of the system in plain words.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { reasonOf } from '../../src/messages/system-reason.js';

function caught(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    return error;
  }
}

test('a file that is missing or is a folder is described without the words of the system', () => {
  expect(reasonOf(caught(() => readFileSync('/no/such/file')))).toBe('it does not exist');
  expect(reasonOf(caught(() => readFileSync('/')))).toBe('it is a folder');
});

test('a connection that is refused is described, also inside an error of fetch', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  expect(reasonOf(await fetch(`http://127.0.0.1:${port}`).catch((error: unknown) => error))).toBe(
    'no program listens there',
  );
  expect(reasonOf(await fetch(`http://localhost:${port}`).catch((error: unknown) => error))).toBe(
    'no program listens there',
  );
});

test('an unknown error keeps its own message', () => {
  expect(reasonOf(new Error('odd'))).toBe('odd');
  expect(reasonOf('text')).toBe('text');
});
