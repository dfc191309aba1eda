// The tokens that a server shares with the other hosts of its database, its own operator token among them.
import type { Membership } from '../../ownership/postgres/join-cluster.js';
import type { Clock } from '../../kernel/clock.js';
import { SharedTokens, type SharedState } from '../../service/access/shared-tokens.js';
import type { NamedToken } from '../../service/access/tokens.js';
import type { OperatorRow } from '../../store/postgres/access/operator-tokens.js';
import type { Io } from '../io.js';
import { operatorTrace, registrationOf } from './own-operator.js';

interface OwnOperator {
  isOwn(row: OperatorRow): boolean;
  register(): Promise<void>;
}

export interface SharedPlace {
  readonly path: string;
  readonly cluster: Membership;
  readonly clock: Clock;
}

// A server with PARLEY_TOKEN registers nothing.
export async function openSharedTokens(
  place: SharedPlace,
  io: Io,
  onProblem: (error: unknown) => void,
): Promise<SharedTokens> {
  const own = io.env['PARLEY_TOKEN'] ? null : ownOperator(place, io);
  await own?.register();
  const renew = own && onceReported(() => own.register(), onProblem);
  return SharedTokens.open(() => load(place.cluster, own, renew), io.timers, onProblem);
}

function ownOperator({ path, cluster, clock }: SharedPlace, io: Io): OwnOperator {
  const registration = registrationOf(path, io);
  const sha256 = registration.readSha256();
  // A directory that is a copy of another has the same token and shares its row.
  const isOwn = (row: OperatorRow): boolean => row.directory === registration.directory || row.sha256 === sha256;
  return {
    isOwn,
    register: () => cluster.registerOperator(registration, operatorTrace(clock.now(), io)),
  };
}

// Never rejects: if the operator token of this host cannot be registered, changes to other tokens must still be read.
// Repeated failures are reported once, until it succeeds again.
function onceReported(work: () => Promise<void>, onProblem: (error: unknown) => void): () => Promise<void> {
  let isReported = false;
  return async () => {
    try {
      await work();
      isReported = false;
    } catch (error) {
      if (!isReported) onProblem(error);
      isReported = true;
    }
  };
}

// While the server runs, only a missing or old row is written again. A row with another hash is left alone: after a
// rotation, a file system that hosts share may show the old file for a while.
async function load(
  cluster: Membership,
  own: OwnOperator | null,
  renew: (() => Promise<void>) | null,
): Promise<SharedState> {
  let known = await cluster.listKnownHashes();
  if (own && renew && !known.operators.some((row) => own.isOwn(row) && row.isRecent)) {
    await renew();
    known = await cluster.listKnownHashes();
  }
  const rank = (row: OperatorRow): number => (own?.isOwn(row) ? 0 : 1);
  return {
    tokens: (await cluster.listTokens()) as NamedToken[],
    operators: known.operators
      .toSorted((one, other) => rank(one) - rank(other))
      .map(({ sha256, user }) => ({ sha256, user })),
    hosts: known.hosts,
  };
}
