// Who may write a running run: the host that owns it, while its lease is valid. All others are refused, but for two:
// anybody may leave the wish to cancel, and a run whose owner's lease is over may be taken over, with a higher epoch.
import type { RunChange } from '../../store.js';
import type { Statement } from '../connection/database.js';

export interface Leases {
  readonly mine: boolean;
  readonly owners: boolean;
}

export function needsLeases(host: string | null, change: RunChange): boolean {
  return (
    host !== null && (change.expect.status === 'running' || change.set?.status === 'running') && !isOnlyWish(change)
  );
}

export function mayWrite(
  host: string | null,
  owner: string | null,
  change: RunChange,
  { mine, owners }: Leases,
): boolean {
  if (!needsLeases(host, change)) return true;
  if (change.expect.status !== 'running' || owner === host) {
    if (mine) return true;
  }
  const stays = statusAfter(change) === 'running';
  return takesOver(change) && !owners && (mine || !stays);
}

export function ownerAfter(host: string | null, owner: string | null, change: RunChange): string | null {
  if (statusAfter(change) !== 'running') return null;
  return change.expect.status !== 'running' || needsLeases(host, change) ? host : owner;
}

// To be read after the run is locked, in a statement of its own: an earlier one may have waited for that lock, and
// would show the leases as they were before. A lease that is being renewed right now is waited for before it counts as
// over.
export function leasesStatement(host: string | null, change: RunChange): Statement {
  const locking = takesOver(change);
  return {
    name: locking ? 'leases-locked' : 'leases',
    text: `SELECT host_id, lease_until > clock_timestamp() AS valid FROM parley.hosts
      WHERE host_id = $1::text OR host_id = (SELECT owner FROM parley.runs
        WHERE run_id = $2::text) ${locking ? 'FOR SHARE' : ''}`,
    values: [host, change.run_id],
  };
}

export function readLeases(
  rows: readonly { host_id: string; valid: boolean }[],
  host: string | null,
  owner: string | null,
): Leases {
  const isValid = (id: string | null) => rows.some((row) => row.host_id === id && row.valid);
  return { mine: isValid(host), owners: isValid(owner) };
}

function takesOver({ expect, set }: RunChange): boolean {
  return expect.status === 'running' && set?.epoch !== undefined && set.epoch > expect.epoch;
}

function statusAfter({ expect, set }: RunChange): string {
  return set?.status ?? expect.status;
}

export function isOnlyWish({ set = {}, journal, turn, handle, ask, resolve, deliveries = [] }: RunChange): boolean {
  const { cancel_requested: wish, ...rest } = set;
  return (
    wish !== undefined &&
    [...Object.values(rest), journal, turn, handle, ask, resolve, ...deliveries].every((each) => each === undefined)
  );
}
