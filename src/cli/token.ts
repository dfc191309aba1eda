// parley token: who besides the operator may use the server. Works with and without one running.
import { mkdirSync } from 'node:fs';
import { toTimestamp } from '../kernel/clock.js';
import { addToken, listTokens, removeToken, type Role } from '../service/tokens.js';
import { renderTable } from '../terminal/table.js';
import { dataDirOf, type DataOption } from './data-dir.js';
import { EXIT, type Io } from './io.js';
import { findServer } from './server.js';
import { styleOf } from './style.js';

export async function addTokenCommand(name: string, options: DataOption & { readonly role: Role }, io: Io): Promise<number> {
  const path = dataDirOf(options, io);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const token = addToken(path, name, options.role, toTimestamp(io.clock.now()));
  io.stdout.write(`${token}\n`);
  if (!io.terminal.stdout) return EXIT.ok;
  // The token is made: a database that cannot be reached keeps nobody from being told so.
  const url = (await findServer(path, io).catch(() => null))?.url;
  io.stderr.write(`the token of ${name} (${options.role}); it is not kept and not shown again\nit signs a browser in at ${url ?? 'http://HOST:PORT'}/sign-in?token=…, or where the console asks for it\n`);
  return EXIT.ok;
}

export async function listTokensCommand(options: DataOption, io: Io): Promise<number> {
  const tokens = listTokens(dataDirOf(options, io));
  if (tokens.length === 0) io.stderr.write('no tokens but that of the operator\n');
  else io.stdout.write(renderTable(tokens.map(({ name, role, created_at: made }) => [name, role, made]), [{ header: 'NAME' }, { header: 'ROLE', whole: true }, { header: 'MADE', whole: true }], styleOf(io)));
  return EXIT.ok;
}

export async function removeTokenCommand(name: string, options: DataOption, io: Io): Promise<number> {
  removeToken(dataDirOf(options, io), name);
  io.stdout.write(`removed ${name}\n`);
  return EXIT.ok;
}
