// parley token: manages the tokens of people and programs, and the browsers that are signed in. Works with and without
// a running server; hosts that share a database see a change at once. Each change is recorded in the
// administrative journal before it takes effect. A revocation takes effect even if it cannot be recorded; that is then
// an error.
import { phraseOfError } from '../../messages/message-template.js';
import { phrase } from '../../messages/phrase.js';
import { toTimestamp } from '../../kernel/clock.js';
import type { JsonObject } from '../../kernel/json.js';
import { RequestError, refusal } from '../../run/request-error.js';
import { operatorTokenFile, readOperatorToken, rotateOperatorToken } from '../../service/access/operator-token.js';
import {
  hashToken,
  listTokens,
  makeToken,
  nameTaken,
  nameUnknown,
  removeToken,
  replaceToken,
  storeToken,
  type NamedToken,
  type Role,
  type TokenDetails,
} from '../../service/access/tokens.js';
import type { TokenUse } from '../../store/access-store.js';
import { unrecorded, type AuditEntry, type AuditTrace, type AuditType } from '../../store/audit.js';
import type { Database } from '../../store/postgres/connection/database.js';
import { renderTable } from '../../terminal/table.js';
import { dataDirOf, openReader, type DataOption } from '../data-dir.js';
import { EXIT, type Io } from '../io.js';
import { databaseUrl } from '../open-data.js';
import { registrationOf } from '../serving/own-operator.js';
import { findServer } from '../serving/server.js';
import { styleOf } from '../style.js';
import { revokeHere, withFiles, withPlace, type Place } from './token-place.js';
import { texts } from '../language/language.js';

export interface TokenOptions extends DataOption {
  readonly role: Role;
  readonly person?: string;
  // How long from now, in milliseconds.
  readonly expires?: number;
}

async function listAll({ path, database }: Place): Promise<readonly NamedToken[]> {
  if (database === null) return listTokens(path);
  const { listTokenRows } = await import('../../store/postgres/access/token-rows.js');
  return (await listTokenRows(database)) as NamedToken[];
}

function describe(
  { trace }: Place,
  type: AuditType,
  { name, person = name, role, expires_at: expires }: NamedToken,
): AuditEntry {
  const body: JsonObject = { name, person, role, ...(expires === undefined ? {} : { expires_at: expires }) };
  return { ...trace, type, body };
}

export async function addTokenCommand(name: string, options: TokenOptions, io: Io): Promise<number> {
  const { token, named } = makeToken(name, {
    role: options.role,
    now: toTimestamp(io.clock.now()),
    ...detailsOf(options, io),
  });
  await withPlace(options, io, async (place) => {
    const entry = describe(place, 'token.added', named);
    if ((await listAll(place)).some((each) => each.name === name)) throw nameTaken(name);
    if (place.database === null) {
      await place.access.appendAudit(entry);
      return storeToken(place.path, named);
    }
    const { addTokenRow } = await import('../../store/postgres/access/token-rows.js');
    if (!(await addTokenRow(place.database, named, entry))) throw nameTaken(name);
  });
  const stored = texts().say.tokenStored(name, options.role);
  await printToken({ token, stored, link: `parley link --as "${name}"` }, options, io);
  return EXIT.ok;
}

function detailsOf({ person, expires }: Partial<TokenOptions>, io: Io): TokenDetails {
  return { person, expires_at: expires === undefined ? undefined : toTimestamp(io.clock.now() + expires) };
}

function operatorAdvice(options: DataOption, io: Io): TokenAdvice {
  const place = operatorTokenFile(dataDirOf(options, io));
  return {
    stored: texts().say.operatorRotated(place),
    link: 'parley link',
  };
}

function rotatedAdvice(name: string): TokenAdvice {
  return { stored: texts().say.tokenRotated(name), link: `parley link --as "${name}"` };
}

interface TokenAdvice {
  readonly stored: string;
  // The command that signs a browser in as this token.
  readonly link: string;
}

async function printToken(
  { token, stored, link }: TokenAdvice & { readonly token: string },
  options: DataOption,
  io: Io,
): Promise<void> {
  io.stdout.write(`${token}\n`);
  if (!io.terminal.stdout) return;
  // The token is valid even if no server can be found.
  const url = (await findServer(dataDirOf(options, io), io).catch(() => null))?.url;
  io.stderr.write(`${stored}\n${texts().say.tokenUse(url ?? texts().say.serverAddress, link)}\n`);
}

export async function listTokensCommand(options: DataOption & { readonly json?: boolean }, io: Io): Promise<number> {
  const { tokens, uses } = await listWithUses(options, io);
  const usedAt = new Map(uses.map(({ token_sha256: hash, used_at: at }) => [hash, toTimestamp(at)]));
  const lastUse = (sha256: string): string | null => usedAt.get(sha256) ?? null;
  if (options.json) {
    for (const { sha256, ...token } of tokens)
      io.stdout.write(
        JSON.stringify({
          type: 'token',
          ...token,
          person: token.person ?? token.name,
          last_used_at: lastUse(sha256),
        }) + '\n',
      );
    return EXIT.ok;
  }
  if (tokens.length === 0) {
    io.stderr.write(`${texts().say.noTokens}\n`);
    return EXIT.ok;
  }
  const now = toTimestamp(io.clock.now());
  const rows = tokens.map(({ name, person = name, role, created_at: made, expires_at: expires, sha256 }) => [
    name,
    person,
    role,
    made,
    expires === undefined ? texts().say.never : expires <= now ? texts().say.expired(expires) : expires,
    usedAt.get(sha256) ?? texts().say.neverUsed,
  ]);
  const headers = texts().say.tokenHeaders;
  const columns = [
    { header: headers.name },
    { header: headers.person },
    { header: headers.role, whole: true },
    { header: headers.created, whole: true },
    { header: headers.expires },
    { header: headers.used },
  ];
  io.stdout.write(
    renderTable(rows, columns, { ...styleOf(io), width: io.terminal.stdout ? styleOf(io).width : Infinity }),
  );
  return EXIT.ok;
}

// Only reads: does not create a missing directory.
async function listWithUses(
  options: DataOption,
  io: Io,
): Promise<{ readonly tokens: readonly NamedToken[]; readonly uses: readonly TokenUse[] }> {
  if (databaseUrl(io) !== null)
    return withPlace(options, io, async (place) => ({
      tokens: await listAll(place),
      uses: await place.access.listTokenUses(),
    }));
  const tokens = listTokens(dataDirOf(options, io));
  const data = await openReader(options, io);
  try {
    return { tokens, uses: (await data?.access.listTokenUses()) ?? [] };
  } finally {
    await data?.close();
  }
}

export async function removeTokenCommand(name: string, options: DataOption, io: Io): Promise<number> {
  const problem = await withFiles(options, io, async (place) => {
    const named = await findToken(place, name);
    const entry = describe(place, 'token.removed', named);
    if (place.database === null)
      return revokeHere(place, { entry, sha256: named.sha256, revoke: () => removeToken(place.path, name) });
    const { removeTokenRow } = await import('../../store/postgres/access/token-rows.js');
    const removed = await removeTokenRow(place.database, name, entry);
    if (!removed.answer) throw nameUnknown(name);
    return removed.problem;
  });
  io.stdout.write(`${texts().say.tokenRevoked(name)}\n`);
  if (problem !== null) throw unrecorded(phrase('token_revoked', { name }), problem);
  return EXIT.ok;
}

async function findToken(place: Place, name: string): Promise<NamedToken> {
  const named = (await listAll(place)).find((each) => each.name === name);
  if (!named) throw nameUnknown(name);
  return named;
}

export interface RotateOptions extends DataOption {
  readonly operator?: boolean;
  readonly expires?: number;
}

// Revokes the old value immediately, together with the sessions that it signed in.
export async function rotateTokenCommand(name: string | undefined, options: RotateOptions, io: Io): Promise<number> {
  if ((name === undefined) !== (options.operator === true)) throw refusal('INVALID_ARGUMENT.rotate_which');
  const { token, problem } =
    name === undefined ? await rotateOperatorHere(options, io) : await rotateNamed(name, options, io);
  const advice = name === undefined ? operatorAdvice(options, io) : rotatedAdvice(name);
  await printToken({ token, ...advice }, options, io);
  if (problem !== null)
    throw unrecorded(name === undefined ? phrase('operator_rotated') : phrase('token_rotated', { name }), problem);
  return EXIT.ok;
}

interface Rotated {
  readonly token: string;
  // Why it could not be recorded.
  readonly problem: unknown;
}

async function rotateNamed(name: string, options: RotateOptions, io: Io): Promise<Rotated> {
  return withFiles(options, io, async (place) => {
    const old = await findToken(place, name);
    const now = toTimestamp(io.clock.now());
    if (options.expires === undefined && old.expires_at !== undefined && old.expires_at <= now)
      throw refusal('INVALID_ARGUMENT.token_expired', { name, time: old.expires_at });
    const expires = detailsOf(options, io).expires_at ?? old.expires_at;
    const { token, named } = makeToken(name, { role: old.role, now, person: old.person, expires_at: expires });
    const entry = describe(place, 'token.rotated', named);
    if (place.database !== null) {
      const { rotateTokenRow } = await import('../../store/postgres/access/token-rows.js');
      const { answer, problem } = await rotateTokenRow(place.database, named, entry);
      if (!answer) throw nameUnknown(name);
      return { token, problem };
    }
    const revoke = (): void => replaceToken(place.path, named);
    return { token, problem: await revokeHere(place, { entry, sha256: old.sha256, revoke }) };
  });
}

async function rotateOperatorHere(options: DataOption, io: Io): Promise<Rotated> {
  if (io.env['PARLEY_TOKEN']) throw refusal('INVALID_ARGUMENT.operator_token_set');
  const rotated = await withFiles(options, io, async (place) => {
    const { path, database, trace } = place;
    const old = readOld(path);
    if (database !== null) return rotateShared(database, { path, old, trace }, io);
    const entry: AuditEntry = { ...trace, type: 'token.rotated', body: { operator: true } };
    let token = '';
    const revoke = (): void => void (token = rotateOperatorToken(path));
    const problem = await revokeHere(place, { entry, sha256: old && hashToken(old), revoke });
    return { token, problem };
  });
  await warnIfPreset(options, io);
  return rotated;
}

// The file is replaced first. If the command is killed in between, the old token stays valid until the next rotation,
// or until a server or a command registers the file; in the other order, hosts would accept a token that is in no file.
async function rotateShared(
  database: Database,
  { path, old, trace }: { readonly path: string; readonly old: string | null; readonly trace: AuditTrace },
  io: Io,
): Promise<Rotated> {
  const { rotateOperator } = await import('../../store/postgres/access/operator-tokens.js');
  const registration = registrationOf(path, io);
  rotateOperatorToken(path);
  let problem: unknown;
  try {
    problem = await rotateOperator(database, registration, { trace, old: old === null ? null : hashToken(old) });
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    throw refusal('STORE_UNAVAILABLE.rotation', { problem: phraseOfError(error) });
  }
  // Another rotation at the same time may have replaced the file again.
  return { token: readOperatorToken(path), problem };
}

function readOld(path: string): string | null {
  try {
    return readOperatorToken(path);
  } catch {
    return null;
  }
}

// A server that was started with PARLEY_TOKEN does not use the token of the directory.
async function warnIfPreset(options: DataOption, io: Io): Promise<void> {
  try {
    const server = await findServer(dataDirOf(options, io), io);
    await server?.call((client) => client.request('GET', '/v1/me'));
  } catch (error) {
    if (error instanceof RequestError && error.code === 'UNAUTHORIZED')
      io.stderr.write(`${texts().say.tokenPreset}
`);
  }
}
