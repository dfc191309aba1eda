// HTTP that no client would send: raw bytes to a socket, and the response until the server closes it.
import { connect, type Socket } from 'node:net';
import { expect } from 'vitest';
import { HTTP_STATUS } from '../../src/contract/error-codes.js';

export interface RawAnswer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

export function open(url: string): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  // Tests need a server that closes while the client still writes.
  socket.on('error', () => {}).setMaxListeners(0);
  return socket;
}

// Everything until the connection is closed. Data that is written after the first response would not be read any more.
export async function exchange(url: string, pieces: string | Iterable<string | Buffer>): Promise<string> {
  const socket = open(url);
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  for (const piece of typeof pieces === 'string' ? [pieces] : pieces) {
    if (text !== '') socket.destroy();
    if (text !== '' || socket.destroyed) break;
    if (!socket.write(piece))
      await new Promise((resolve) => socket.once('drain', resolve).once('data', resolve).once('close', resolve));
  }
  await closed;
  return text;
}

// The responses in it, in order; only those with a length.
export function answersIn(text: string): RawAnswer[] {
  const answers: RawAnswer[] = [];
  for (let rest = text; rest !== '';) {
    const end = rest.indexOf('\r\n\r\n');
    expect(end, rest.slice(0, 500)).toBeGreaterThan(0);
    const head = rest.slice(0, end);
    const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
    answers.push({
      status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]),
      head,
      body: rest.slice(end + 4, end + 4 + length),
    });
    rest = rest.slice(end + 4 + length);
  }
  return answers;
}

export async function ask(url: string, pieces: string | Iterable<string | Buffer>): Promise<RawAnswer> {
  const [answer, ...more] = answersIn(await exchange(url, pieces));
  expect(more).toEqual([]);
  if (!answer) throw new Error('the server has closed the connection without a response');
  return answer;
}

// In the one envelope, with a code that has this status, and without internal details.
export function expectRefused(
  { status, body }: { readonly status: number; readonly body: string },
  code?: keyof typeof HTTP_STATUS,
): void {
  expect(body).not.toMatch(/node_modules|\n {4}at |FST_ERR|HPE_|Zod/);
  const { error, ...rest } = JSON.parse(body) as { error: { code: keyof typeof HTTP_STATUS; message: string } };
  expect(rest).toEqual({});
  expect(error.code).not.toBe('INTERNAL');
  expect(HTTP_STATUS[error.code], error.code).toBe(status);
  expect(status, body).toBeGreaterThanOrEqual(400);
  expect(error.message.length).toBeGreaterThan(0);
  if (code !== undefined) expect(error.code, error.message).toBe(code);
}
