// Recognises failures that mean that the database cannot be reached, and describes them with the place of the database,
// never with the password.
import type { Phrase, Values } from '../../../kernel/fill-template.js';
import { phrase, textOf } from '../../../messages/phrase.js';
import { RequestError, refusal } from '../../../run/request-error.js';

export class LostConnectionError extends RequestError {
  // A change was sent without a response: it may be stored or not.
  readonly uncertain: boolean;

  constructor(
    message: string,
    { uncertain = false, values = {} }: { readonly uncertain?: boolean; readonly values?: Values } = {},
  ) {
    super('STORE_UNAVAILABLE', message, { values });
    this.uncertain = uncertain;
  }
}

// Codes of PostgreSQL: connection, shutdown and crash, a transaction that was idle for too long, a server that has
// become read-only. Codes of the system: all connection errors.
const CODES = /^(?:08[0-9A-Z]{3}|57P0\d|25P03|25006|E(?!RR_)[A-Z_]+)$/;
// Messages of the driver without a code.
const SAYINGS = /^(?:Connection terminated|Client (?:has encountered|was closed)|Query read timeout)/;
// Out of resources, a lock or a result that did not come in time, a failing disk: the connection still works, and
// nothing was changed.
const REFUSED = /^(?:53[0-9A-Z]{3}|55P03|57014|58[0-9A-Z]{3})$/;

export function isLost(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return typeof code === 'string' ? CODES.test(code) : typeof message === 'string' && SAYINGS.test(message);
}

export function isRefusedNow(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && REFUSED.test(code);
}

export function describeLoss(
  place: Place,
  error: unknown,
  { uncertain = false }: { readonly uncertain?: boolean } = {},
): LostConnectionError {
  const { code, message } = error as { code?: string; message?: string };
  const why = /client password must be a string/.test(message ?? '')
    ? phrase('no_password')
    : message || code
      ? hide(message || code || '', place.password)
      : phrase('no_reason');
  const [certainly, perhaps] = isRefusedNow(error)
    ? (['STORE_UNAVAILABLE.busy', 'STORE_UNAVAILABLE.busy_uncertain'] as const)
    : (['STORE_UNAVAILABLE.unreachable', 'STORE_UNAVAILABLE.unreachable_uncertain'] as const);
  const { message: text, values } = refusal(uncertain ? perhaps : certainly, { database: place.label, reason: why });
  return new LostConnectionError(text, { uncertain, values });
}

function hide(text: string, password: string): string {
  // A very short password would be revealed by the gaps that it leaves.
  return password.length < 4 ? text : text.replaceAll(password, '…');
}

// The place of a database, without secrets.
export interface Place {
  readonly name: string;
  // The name in other languages.
  readonly label: Phrase;
  readonly password: string;
}

export function readPlace(url: string): Place {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || !/^postgres(?:ql)?:$/.test(parsed.protocol)) throw refusal('INVALID_ARGUMENT.database_url');
  // The driver would guess: with one stray %, it leaves all other percent-encoded characters undecoded.
  if (STRAY.test(url)) throw strayPercent();
  decode(parsed.username);
  const label = phrase('database_at', {
    database: decode(parsed.pathname.slice(1)) || 'postgres',
    host: parsed.host || parsed.searchParams.get('host') || 'localhost',
  });
  return {
    name: textOf(label),
    label,
    password: decode(parsed.password),
  };
}

const STRAY = /%(?![0-9a-f]{2})/i;

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    // The reason would contain the URL.
    throw strayPercent();
  }
}

function strayPercent(): RequestError {
  return refusal('INVALID_ARGUMENT.database_url_percent');
}
