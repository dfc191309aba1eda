// An unreliable connection: forwards bytes to a server, and closes each connection after part of the response.
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface CuttingProxy {
  readonly url: string;
  readonly cuts: number;
  close(): Promise<void>;
}

export async function openCuttingProxy(target: string, cutAfter: () => number): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  let cuts = 0;
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    const cut = (): void => void [near.resetAndDestroy(), far.resetAndDestroy()];
    for (const socket of [near, far]) {
      open.add(socket);
      socket
        .on('error', () => {})
        .once('close', () => {
          open.delete(socket);
          near.destroy();
          far.destroy();
        });
    }
    near.pipe(far);
    let left = cutAfter();
    far.on('data', (bytes: Buffer) => {
      left -= bytes.length;
      if (left > 0) {
        if (!near.write(bytes)) far.pause();
        return;
      }
      cuts += 1;
      // Usually in the middle of a frame: the bytes before the cut still arrive.
      near.write(bytes.subarray(0, bytes.length + left), cut);
      far.pause();
    });
    near.on('drain', () => far.resume());
    far.on('end', () => near.end());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get cuts() {
      return cuts;
    },
    close: async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
