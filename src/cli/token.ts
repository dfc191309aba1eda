// parley token: who besides the operator may use the server. Works with and without one running; of hosts that share a database, all know the token.
import { mkdirSync } from 'node:fs';
import { toTimestamp } from '../kernel/clock.js';
import type { Database } from '../store/postgres/database.js';
import { addTokenRow, listTokenRows, removeTokenRow } from '../store/postgres/token-rows.js';
import { addToken, listTokens, makeToken, nameTaken, nameUnknown, removeToken, type Role } from '../service/tokens.js';
import { renderTable } from '../terminal/table.js';
import { dataDirOf, type DataOption } from './data-dir.js';
import { EXIT, type Io } from './io.js';
import { databaseUrl } from './open-data.js';
import { findServer } from './server.js';
import { styleOf } from './style.js';

export async function addTokenCommand(name: string, options: DataOption & { readonly role: Role }, io: Io): Promise<number> {
  const path = dataDirOf(options, io);
  const now = toTimestamp(io.clock.now());
  const token = (await withShared(io, async (database) => {
    const made = makeToken(name, options.role, now);
    if (!(await addTokenRow(database, made.named))) throw nameTaken(name);
    return made.token;
  })) ?? addHere(path, name, options.role, now);
  io.stdout.write(`${token}\n`);
  if (!io.terminal.stdout) return EXIT.ok;
  // The token is made: a database that cannot be reached keeps nobody from being told so.
  const url = (await findServer(path, io).catch(() => null))?.url;
  io.stderr.write(`the token of ${name} (${options.role}); it is not kept and not shown again\nit signs a browser in at ${url ?? 'http://HOST:PORT'}/sign-in?token=…, or where the console asks for it\n`);
  return EXIT.ok;
}

function addHere(path: string, name: string, role: Role, now: string): string {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return addToken(path, name, role, now);
}

// In the database that hosts share; undefined: there is none.
async function withShared<T>(io: Io, work: (database: Database) => Promise<T>): Promise<T | undefined> {
  const url = databaseUrl(io);
  if (url === null) return undefined;
  const { openPostgres } = await import('../store/postgres/open-postgres.js');
  const store = await openPostgres(url, { host: null, connections: 1 });
  try {
    return await work(store.database);
  } finally {
    await store.close();
  }
}

export async function listTokensCommand(options: DataOption, io: Io): Promise<number> {
  const tokens = (await withShared(io, listTokenRows)) ?? listTokens(dataDirOf(options, io));
  if (tokens.length === 0) io.stderr.write('no tokens but that of the operator\n');
  else io.stdout.write(renderTable(tokens.map(({ name, role, created_at: made }) => [name, role, made]), [{ header: 'NAME' }, { header: 'ROLE', whole: true }, { header: 'MADE', whole: true }], styleOf(io)));
  return EXIT.ok;
}

export async function removeTokenCommand(name: string, options: DataOption, io: Io): Promise<number> {
  const isShared = await withShared(io, async (database) => {
    if (!(await removeTokenRow(database, name))) throw nameUnknown(name);
    return true;
  });
  if (!isShared) removeToken(dataDirOf(options, io), name);
  io.stdout.write(`removed ${name}\n`);
  return EXIT.ok;
}
