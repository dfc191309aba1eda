// Admits a host to those that share a database: all hosts must use the same setting for run files, and each disk has
// one host. A conflicting host may have crashed, so its lease is observed: if it is renewed, the new host is refused;
// if it expires, the new host is admitted.
import type { Timers } from '../../process/timers.js';
import { refusal, type RequestError } from '../../run/request-error.js';
import type { Database } from '../../store/postgres/connection/database.js';
import { listLiveHosts, type HostRecord } from '../../store/postgres/hosts/host-lease.js';
import type { Site } from '../../store/postgres/hosts/site.js';

const POLL_MS = 500;

export interface Applicant extends Site {
  readonly name: string;
}

export async function admitHost(db: Database, timers: Timers, applicant: Applicant): Promise<void> {
  let previous: HostRecord | undefined;
  for (;;) {
    const [conflict] = (await listLiveHosts(db)).flatMap((host) => {
      const problem = explainConflict(host, applicant);
      return problem === null ? [] : [{ host, problem }];
    });
    if (!conflict) break;
    const { host, problem } = conflict;
    if (previous?.host_id === host.host_id && host.lease_until > previous.lease_until) throw problem;
    previous = host;
    await new Promise<void>((resolve) => timers.set(POLL_MS, resolve));
  }
  // A live lease of the same site belongs to an earlier process of this host. That process has exited, because this one
  // holds the lock of the data directory.
  if (applicant.site !== null)
    await db.read({
      name: 'end-earlier',
      text:
        'UPDATE parley.hosts SET lease_until = clock_timestamp() WHERE site = $1 AND lease_until > ' +
        'clock_timestamp() RETURNING host_id',
      values: [applicant.site],
    });
}

function explainConflict({ name: host, site, place }: HostRecord, applicant: Applicant): RequestError | null {
  if ((site === null) !== (applicant.site === null))
    return refusal('HOSTS_DIFFER.mode', { host, other: modeOf(site), own: modeOf(applicant.site) });
  if (site === null)
    return place === applicant.place
      ? null
      : refusal('HOSTS_DIFFER.path', { host, other: String(place), own: String(applicant.place) });
  if (site !== applicant.site || (host === applicant.name && place === applicant.place)) return null;
  return refusal('HOSTS_DIFFER.disk', { host, path: String(place) });
}

function modeOf(site: string | null): string {
  return site === null ? 'shared' : 'host';
}
