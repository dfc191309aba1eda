// parley link: prints a link that signs one browser in, once, within minutes; on a terminal also as a QR code.
import { refusal } from '../../run/request-error.js';
import { drawQrCode } from '../../terminal/qr-code.js';
import { paint } from '../../terminal/style.js';
import { dataDirOf, type DataOption } from '../data-dir.js';
import { EXIT, type Io } from '../io.js';
import { findServer } from './server.js';
import { styleOf } from '../style.js';
import { texts } from '../language/language.js';

export interface LinkOptions extends DataOption {
  readonly as?: string;
  // In milliseconds.
  readonly expires?: number;
  readonly json?: boolean;
}

const LOOPBACK = /^(?:localhost|.*\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

export async function linkCommand({ as, expires, json, ...options }: LinkOptions, io: Io): Promise<number> {
  const path = dataDirOf(options, io);
  const server = await findServer(path, io);
  if (!server) throw refusal('NOT_FOUND.server', { path });
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
  io.stderr.write(`${texts().say.linkUse(link.name, link.role, link.expires_at)}\n`);
  if (LOOPBACK.test(hostname)) io.stderr.write(`${paint(err, 'yellow', texts().say.loopback(hostname))}\n`);
  return EXIT.ok;
}
