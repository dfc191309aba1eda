// Whether a host can be one of those that are there: all keep the files of runs in the same way, and each disk has one
// host. A host that stands in the way may be dead without having said so; then its lease is not renewed, and is waited
// for.
import type { Timers } from '../../process/timers.js';
import { RequestError } from '../../run/request-error.js';
import type { Database } from '../../store/postgres/connection/database.js';
import { listLiveHosts, type HostRecord } from '../../store/postgres/hosts/host-lease.js';
import type { Site } from '../../store/postgres/hosts/site.js';

const LOOK_MS = 500;

export interface Applicant extends Site {
  readonly name: string;
}

export async function admitHost(db: Database, timers: Timers, applicant: Applicant): Promise<void> {
  let before: HostRecord | undefined;
  for (;;) {
    const [found] = (await listLiveHosts(db)).flatMap((host) => {
      const why = explain(host, applicant);
      return why === null ? [] : [{ host, why }];
    });
    if (!found) break;
    const { host, why } = found;
    if (before?.host_id === host.host_id && host.lease_until > before.lease_until)
      throw new RequestError('HOSTS_DIFFER', why);
    before = host;
    await new Promise<void>((resolve) => timers.set(LOOK_MS, resolve));
  }
  // It was this one before it was started again: the lock of the data directory says that it is gone.
  if (applicant.site !== null)
    await db.read({
      name: 'end-earlier',
      text:
        'UPDATE parley.hosts SET lease_until = clock_timestamp() WHERE site = $1 AND lease_until > ' +
        'clock_timestamp() RETURNING host_id',
      values: [applicant.site],
    });
}

function explain({ name, site, place }: HostRecord, me: Applicant): string | null {
  if ((site === null) !== (me.site === null))
    return (
      `host ${name} has cluster.files "${modeOf(site)}", this one "${modeOf(me.site)}": set the same in the ` +
      'config.json of all hosts, with all of them stopped'
    );
  if (site === null)
    return place === me.place
      ? null
      : `host ${name} has the shared files in ${place}, this one in ${me.place}: all hosts must see them under ` +
          'the same path';
  if (site !== me.site || (name === me.name && place === me.place)) return null;
  return (
    `host ${name} serves this disk already, from ${place}: two data directories have the same file "site"; ` +
    'in the one that is a copy, delete it'
  );
}

function modeOf(site: string | null): string {
  return site === null ? 'shared' : 'host';
}
