// A connection to a database that can be cut at an exact place, closed, and delayed.
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface PostgresProxy {
  // The address of the same database through this proxy.
  readonly url: string;
  // Cuts the connection on which these bytes come, instead of forwarding them. From the client: the server never
  // receives them; from the server: it has executed the request, and the response is lost. With `close`, new
  // connections are refused as well.
  cutAt(from: 'client' | 'server', bytes: string, options?: { close?: boolean }): Promise<void>;
  // Refuses connections until it is opened again.
  shut(): void;
  open(): void;
  // Holds back the server's output until it is released.
  hold(): () => void;
  close(): Promise<void>;
}

export async function openPostgresProxy(target: string): Promise<PostgresProxy> {
  const { hostname, port } = new URL(target);
  const pairs = new Set<() => void>();
  let isShut = false;
  let held: (() => void)[] | null = null;
  let cut: { from: 'client' | 'server'; bytes: Buffer; done: () => void } | null = null;

  const server = createServer((near) => {
    if (isShut) return void near.resetAndDestroy();
    const far = connect(Number(port), hostname);
    const end = (): void => {
      pairs.delete(end);
      near.resetAndDestroy();
      far.resetAndDestroy();
    };
    pairs.add(end);
    const pass = (from: 'client' | 'server', source: Socket, sink: Socket): void => {
      source
        .on('error', () => {})
        .on('close', end)
        .on('data', (bytes: Buffer) => {
          if (cut?.from === from && bytes.includes(cut.bytes)) {
            const { done } = cut;
            cut = null;
            end();
            return done();
          }
          if (from === 'server' && held) return void held.push(() => sink.write(bytes));
          return void sink.write(bytes);
        });
    };
    pass('client', near, far);
    pass('server', far, near);
    return undefined;
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const shut = (): void => {
    isShut = true;
    for (const end of pairs) end();
  };
  const url = new URL(target);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    cutAt: (from, bytes, { close = false } = {}) =>
      new Promise((resolve) => {
        cut = {
          from,
          bytes: Buffer.from(bytes),
          done: () => {
            if (close) shut();
            resolve();
          },
        };
      }),
    shut,
    open: () => {
      isShut = false;
    },
    hold: () => {
      held = [];
      return () => {
        const waiting = held ?? [];
        held = null;
        for (const write of waiting) write();
      };
    },
    close: async () => {
      shut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
