// Access to a server that is about to start: its tokens, its public address, the folders where runs may work, and the
// record of changed settings.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Membership } from '../../ownership/postgres/join-cluster.js';
import type { LiveSettings } from '../../settings/live-settings.js';
import type { Settings } from '../../settings/settings.js';
import type { Clock } from '../../kernel/clock.js';
import { canonicalText, isObject, parseJson, type JsonObject } from '../../kernel/json.js';
import { OWN_FILE, readTextSync } from '../../files/read-file.js';
import { realPathOf } from '../../files/real-path.js';
import { refusal } from '../../run/request-error.js';
import { checkStrength, fixedOperator, operatorIn, type OperatorSource } from '../../service/access/operator-token.js';
import { TokenBook, type Caller } from '../../service/access/token-book.js';
import { findNamed, tokensIn, type NamedToken } from '../../service/access/tokens.js';
import type { AccessStore } from '../../store/access-store.js';
import type { Io } from '../io.js';
import { hostNameOf } from '../open-data.js';
import { openSharedTokens } from './open-shared-tokens.js';

export interface ServedTokens {
  readonly tokens: TokenBook;
  close(): Promise<void>;
}

export interface TokenPlace {
  readonly path: string;
  readonly cluster: Membership | null;
  readonly access: AccessStore;
  readonly clock: Clock;
}

export async function openTokens(
  { path, cluster, access, clock }: TokenPlace,
  io: Io,
  onProblem: (error: unknown) => void,
): Promise<ServedTokens> {
  const shared = cluster && (await openSharedTokens({ path, cluster, clock }, io, onProblem));
  const stopListening = shared ? access.onChanged(() => shared.changed()) : () => {};
  try {
    const source = shared ?? tokensIn(path);
    const operator: OperatorSource = presetOperator(io, source.list()) ?? shared?.operator ?? operatorIn(path);
    return {
      tokens: new TokenBook({
        source,
        operator,
        userName: io.machine.userName,
        clock,
        onProblem,
        ...(shared ? { hosts: () => shared.hosts() } : {}),
      }),
      close: async () => {
        stopListening();
        await shared?.close();
      },
    };
  } catch (error) {
    await shared?.close();
    throw error;
  }
}

// Returns the operator of PARLEY_TOKEN, if it is set. The token must be hard to guess and must not be a named token.
function presetOperator({ env }: Io, tokens: readonly NamedToken[]): OperatorSource | null {
  const token = env['PARLEY_TOKEN'];
  if (token === undefined || token === '') return null;
  checkStrength(token);
  const named = findNamed(tokens, token);
  if (named) throw refusal('INVALID_ARGUMENT.operator_is_named', { name: named.name, role: named.role });
  return fixedOperator(token);
}

// The address that people use; null for the address that the server listens on.
export function publicUrlOf({ public_url: text }: Settings): URL | null {
  if (text === null) return null;
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && url.username === '' && url.password === '') return url;
  const example = 'https://parley.example.com';
  throw refusal('INVALID_ARGUMENT.public_url', { url: text, example });
}

// The operator token gives full access to this account. Other tokens may use workspace_roots, or by default the home
// and the folder that the server was started in.
export function workspaceRootsOf(
  settings: LiveSettings,
  io: Io,
  warn: (message: string) => void,
): (caller: Caller) => readonly string[] | null {
  const usual = defaultRoots(io, settings.current, warn);
  return ({ actor }) => settings.current.workspace_roots ?? (actor.kind === 'user' ? null : usual);
}

// The default roots for named tokens: the user's home and the folder that the server was started in. Never the whole
// machine: systemd starts services in /.
function defaultRoots(
  { cwd, machine: { home } }: Io,
  { workspace_roots: set }: Settings,
  warn: (message: string) => void,
): string[] {
  if (set === null && (cwd === null || realPathOf(cwd) === '/')) {
    const place = cwd === null ? 'a folder that was deleted' : '/';
    warn(
      `The server was started in ${place}, so runs of named tokens may work only in ${home}. Set workspace_roots ` +
        'in config.json to allow other folders.',
    );
  }
  return [home, cwd].filter((path) => path !== null && path !== '' && realPathOf(path) !== '/') as string[];
}

// How many rows of the journal are searched for the last settings of this host.
const SEARCHED = 200;

// Records in the administrative journal which settings differ from those that it recorded last. Records digests of the
// values, because values may be secrets.
export async function recordSettings({ path, access, clock }: Omit<TokenPlace, 'cluster'>, io: Io): Promise<void> {
  const keys = digestSettings(path);
  const host = hostNameOf(io);
  const rows = (await access.listAuditOfType('settings.changed', SEARCHED))
    .map(({ body_json: body }) => parseJson(body))
    .filter(isObject);
  const last = rows.find((row) => row['host'] === host) ?? rows[0];
  const before = isObject(last?.['keys']) ? last['keys'] : {};
  const changed = [...new Set([...Object.keys(before), ...Object.keys(keys)])]
    .filter((key) => before[key] !== keys[key])
    .toSorted();
  if (changed.length === 0) return;
  await access.appendAudit({
    at: clock.now(),
    actor: { kind: 'user', name: io.machine.userName },
    address: null,
    type: 'settings.changed',
    body: { host, changed, keys },
  });
}

function digestSettings(path: string): JsonObject {
  // The settings were read before, so the file is readable; one that was removed meanwhile counts as empty.
  const settings = parseJson(readTextSync(join(path, 'config.json'), OWN_FILE) ?? '');
  if (!isObject(settings)) return {};
  return Object.fromEntries(
    Object.entries(settings).map(([key, value]) => [
      key,
      createHash('sha256')
        .update(`${key} ${canonicalText(value)}`)
        .digest('hex'),
    ]),
  );
}
