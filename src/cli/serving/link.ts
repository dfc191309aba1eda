// parley link: a link that signs one browser in, once, within minutes; in a terminal also as a QR code for a phone.
import { RequestError } from '../../run/request-error.js';
import { drawQrCode } from '../../terminal/qr-code.js';
import { paint } from '../../terminal/style.js';
import { dataDirOf, type DataOption } from '../data-dir.js';
import { EXIT, type Io } from '../io.js';
import { findServer } from './server.js';
import { styleOf } from '../style.js';

export interface LinkOptions extends DataOption {
  readonly as?: string;
  // In milliseconds.
  readonly expires?: number;
  readonly json?: boolean;
}

const HINT = 'For other devices, set public_url in config.json.';
const LOOPBACK = /^(?:localhost|.*\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

export async function linkCommand({ as, expires, json, ...options }: LinkOptions, io: Io): Promise<number> {
  const path = dataDirOf(options, io);
  const server = await findServer(path, io);
  if (!server) throw new RequestError('NOT_FOUND', `No server is running on ${path}. Start one: parley serve`);
  const link = await server.call((client) =>
    client.createSignInCode({
      ...(as === undefined ? {} : { as }),
      ...(expires === undefined ? {} : { expires_in_sec: Math.round(expires / 1000) }),
    }),
  );
  if (json) {
    io.stdout.write(`${JSON.stringify({ type: 'link', ...link })}\n`);
    return EXIT.ok;
  }
  const style = styleOf(io);
  if (io.terminal.stdout) io.stdout.write(`${drawQrCode(link.url, style)}\n`);
  io.stdout.write(`${link.url}\n`);
  const { hostname } = new URL(link.url);
  const err = styleOf(io, 'stderr');
  io.stderr.write(`Signs one browser in as ${link.name} (${link.role}), once, until ${link.expires_at}.\n`);
  if (LOOPBACK.test(hostname))
    io.stderr.write(
      `${paint(err, 'yellow', `Only this machine can open it: ${hostname} is a loopback address. ${HINT}`)}\n`,
    );
  return EXIT.ok;
}
