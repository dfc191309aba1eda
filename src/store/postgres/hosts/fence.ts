// Who may append to a running run: the host that owns it, while its lease is valid. There is one exception: another
// host may take over a run whose owner has lost its lease, with a higher epoch.
import type { RunAppend } from '../../store.js';
import type { Statement } from '../connection/database.js';

export interface Leases {
  readonly mine: boolean;
  readonly owners: boolean;
}

// The parts of an append that decide who may write it.
export type Fenced = Pick<RunAppend, 'run_id' | 'expect' | 'epoch' | 'before' | 'after'>;

export function needsLeases(host: string | null, { before, after }: Fenced): boolean {
  return host !== null && (before.status === 'running' || after.status === 'running');
}

// `host` writes, `owner` owns the run.
interface Hosts {
  readonly host: string | null;
  readonly owner: string | null;
}

export function mayWrite({ host, owner }: Hosts, append: Fenced, { mine, owners }: Leases): boolean {
  if (!needsLeases(host, append)) return true;
  if (append.before.status !== 'running' || owner === host) {
    if (mine) return true;
  }
  const stays = append.after.status === 'running';
  return takesOver(append) && !owners && (mine || !stays);
}

export function ownerAfter(host: string | null, owner: string | null, append: Fenced): string | null {
  if (append.after.status !== 'running') return null;
  return append.before.status !== 'running' || needsLeases(host, append) ? host : owner;
}

// Read it after the run is locked, in a separate statement: an earlier one may have waited for that lock, and would
// show the leases from before. A lease renewal in progress is awaited before the lease counts as expired.
export function leasesStatement(host: string | null, append: Fenced): Statement {
  const locking = takesOver(append);
  return {
    name: locking ? 'leases-locked' : 'leases',
    text: `SELECT host_id, lease_until > clock_timestamp() AS valid FROM parley.hosts
      WHERE host_id = $1::text OR host_id = (SELECT owner FROM parley.runs
        WHERE run_id = $2::text) ${locking ? 'FOR SHARE' : ''}`,
    values: [host, append.run_id],
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

function takesOver({ expect, epoch, before }: Fenced): boolean {
  return before.status === 'running' && epoch !== undefined && epoch > expect.epoch;
}
