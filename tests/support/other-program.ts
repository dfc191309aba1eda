// Another program on the port of a host, which records requests and their tokens.
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface OtherProgram {
  readonly url: string;
  // Method, path without its query, and the token.
  readonly asked: string[];
}

export async function listenAsOtherProgram(answer: RequestListener, port = 0): Promise<OtherProgram> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url?.split('?')[0]} ${request.headers.authorization}`);
    answer(request, response);
  });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

export function challengeIn(url: string | undefined): string {
  return new URL(url ?? '', 'http://any').searchParams.get('challenge') ?? '';
}
