// parley open: opens the console in the browser. Needs a running server. Prints the address if no browser can be
// opened.
import { spawn } from 'node:child_process';
import { findNamed } from '../../process/find-program.js';
import { refusal } from '../../run/request-error.js';
import { dataDirOf, type DataOption } from '../data-dir.js';
import { EXIT, type Io } from '../io.js';
import { findServer } from './server.js';
import { texts } from '../language/language.js';

export async function openCommand(options: DataOption, io: Io): Promise<number> {
  const path = dataDirOf(options, io);
  const server = await findServer(path, io);
  if (!server) throw refusal('NOT_FOUND.server', { path });
  const address = addressOf(server.url);
  const browser = io.terminal.stdout ? findBrowser(io) : null;
  if (browser === null) {
    io.stdout.write(`${address}\n`);
    return EXIT.ok;
  }
  io.stdout.write(`${texts().say.opening(address)}\n`);
  const [program, ...args] = browser;
  const child = spawn(program, [...args, address], { detached: true, stdio: 'ignore' });
  child.on('error', () => io.stderr.write(`${texts().say.browserFailed(address)}\n`));
  child.unref();
  return EXIT.ok;
}

// The page explains how to sign in.
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
