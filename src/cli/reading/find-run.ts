// Finds the run that a person names: by its id, by the end or the beginning of it, or by the word "last". Uses indexes:
// the cost does not grow with the number of runs.
import { isStored } from '../../journal/every-run.js';
import { loadRun, salvageRun } from '../../journal/load-run.js';
import { RequestError } from '../../run/request-error.js';
import type { RunRecord, Store } from '../../store/store.js';
import { TAIL_CHARS } from '../../store/run-finder.js';
import type { Io } from '../io.js';
import { dataDirOf, openReader, type DataOption } from '../data-dir.js';
import type { ReadData } from '../open-data.js';
import { tellDamage } from './tell-damage.js';

const PREFIX = 'run_';
const SHOWN_MATCHES = 5;

export interface FindOptions {
  // What "last" means: the newest run, the newest that waits for an answer, or that one unless the newest run has an
  // answer with this key: an answer that is given again reaches the run that it was given to.
  readonly last?: 'newest' | 'waiting' | 'keyed';
  readonly key?: string;
}

export async function findRun(store: Store, runRef: string): Promise<RunRecord> {
  return loadRun(store, await findRunId(store, runRef));
}

// By their ids alone: a run whose row is damaged is found, too.
export async function findRunId(store: Store, runRef: string, options: FindOptions = {}): Promise<string> {
  if (await isStored(store, runRef)) return runRef;
  if (runRef === 'last') return findLast(store, options);
  const part = runRef.toUpperCase().replace(/^RUN_/, '');
  if (part.length < TAIL_CHARS) {
    const rule = `Give at least ${TAIL_CHARS} characters of its id after run_, as parley ls shows them.`;
    throw notFound(`There is no run "${runRef}". ${rule}`);
  }
  const tails = (await store.listByTail([part.slice(-TAIL_CHARS)])).filter((id) => id.endsWith(part));
  // What a list shows is the end of an id: it comes first.
  const found = tails.length > 0 ? tails : await store.listByPrefix(`${PREFIX}${part}`, SHOWN_MATCHES + 1);
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  if (only === undefined) throw notFound(`There is no run "${runRef}". parley ls lists the runs.`);
  const isMore = found.length > SHOWN_MATCHES;
  const count = isMore ? `more than ${SHOWN_MATCHES}` : found.length;
  const shown = `${found.slice(0, SHOWN_MATCHES).join(', ')}${isMore ? ' …' : ''}`;
  throw notFound(`"${runRef}" is ambiguous; it matches ${count} runs: ${shown}`);
}

function notFound(message: string): RequestError {
  return new RequestError('RUN_NOT_FOUND', message);
}

async function findLast(store: Store, { last = 'newest', key }: FindOptions): Promise<string> {
  if (last === 'newest') return findNewest(store);
  const [newest] = last === 'keyed' ? await store.listRunIds({ limit: 1 }) : [];
  const isRepeated = newest !== undefined && key !== undefined && (await store.loadByKey(newest, key)) !== null;
  return isRepeated ? newest : findWaiting(store);
}

async function findNewest(store: Store): Promise<string> {
  const [newest] = await store.listRunIds({ limit: 1 });
  if (newest !== undefined) return newest;
  throw notFound('There is no run yet. Start one: parley run ENGINE "…"');
}

async function findWaiting(store: Store): Promise<string> {
  const [newest] = await store.listRunIds({ status: 'waiting_user', limit: 1 });
  if (newest !== undefined) return newest;
  const ways = 'parley ls lists the runs; parley continue RUN "…" follows up on one that has ended.';
  throw new RequestError('RUN_NOT_WAITING', `No run is waiting for an answer. ${ways}`);
}

// The shortest ends of these ids that name no other run; each finds its run by findRunId.
export async function shortenIds(store: Store, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const alike = await store.listByTail(ids.map((id) => id.slice(-TAIL_CHARS)));
  const rivals = new Map<string, string[]>();
  for (const id of new Set([...alike, ...ids])) {
    const tail = id.slice(-TAIL_CHARS);
    rivals.set(tail, [...(rivals.get(tail) ?? []), id]);
  }
  return new Map(
    ids.map((id) => {
      const others = (rivals.get(id.slice(-TAIL_CHARS)) ?? []).filter((other) => other !== id);
      let chars = TAIL_CHARS;
      while (chars < id.length && others.some((other) => other.endsWith(id.slice(-chars)))) chars += 1;
      return [id, id.slice(-chars)];
    }),
  );
}

export type WithRunOptions = DataOption & FindOptions;

// Opens the directory to read, finds the run, and closes again when the work is done. A damaged run is read as far as
// possible, and its damage is reported on stderr.
export async function withRun<T>(
  runRef: string,
  options: WithRunOptions,
  io: Io,
  work: (data: ReadData, run: RunRecord) => Promise<T>,
): Promise<T> {
  return withRunId(runRef, options, io, async (data, id) => {
    const { run, damage } = await salvageRun(data.store, id);
    tellDamage(damage, io);
    return work(data, run);
  });
}

export async function withRunId<T>(
  runRef: string,
  options: WithRunOptions,
  io: Io,
  work: (data: ReadData, runId: string) => Promise<T>,
): Promise<T> {
  const data = await openReader(options, io);
  if (!data) throw notFound(`There is no run "${runRef}": nothing was ever run in ${dataDirOf(options, io)}`);
  try {
    return await work(data, await findRunId(data.store, runRef, options));
  } finally {
    await data.close();
  }
}
