// parley open: the console in the browser. It starts nothing: a server must be running. Where no browser can be opened,
// the address is printed.
import { spawn } from 'node:child_process';
import { findNamed } from '../../process/find-program.js';
import { RequestError } from '../../run/request-error.js';
import { dataDirOf, type DataOption } from '../data-dir.js';
import { EXIT, type Io } from '../io.js';
import { findServer } from './server.js';

export async function openCommand(options: DataOption, io: Io): Promise<number> {
  const path = dataDirOf(options, io);
  const server = await findServer(path, io);
  if (!server) throw new RequestError('NOT_FOUND', `No server is running for ${path}. Start one: parley serve`);
  const address = addressOf(server.url);
  const browser = io.terminal.stdout ? findBrowser(io) : null;
  if (browser === null) {
    io.stdout.write(`${address}\n`);
    return EXIT.ok;
  }
  io.stdout.write(`Opening ${address}\n`);
  const [program, ...args] = browser;
  const child = spawn(program, [...args, address], { detached: true, stdio: 'ignore' });
  child.on('error', () => io.stderr.write(`The browser could not be started. Open the address yourself: ${address}\n`));
  child.unref();
  return EXIT.ok;
}

// The page itself says how to sign in to a browser that is not.
function addressOf(url: string): string {
  return `${url.replace(/\/+$/, '')}/`;
}

function findBrowser({ env, machine }: Io): readonly [string, ...string[]] | null {
  const path = env['PATH'] ?? '';
  const named = env['BROWSER'];
  if (named) {
    const program = findNamed(named, path);
    return program === null ? null : [program];
  }
  if (machine.platform === 'darwin') return ['open'];
  if (machine.platform === 'win32') return ['cmd', '/c', 'start', ''];
  const hasScreen = Boolean(env['DISPLAY'] || env['WAYLAND_DISPLAY']);
  const opener = hasScreen ? findNamed('xdg-open', path) : null;
  return opener === null ? null : [opener];
}
