// Finds the run that a person names: by its id, by the end or the beginning of it, or by the word "last". Uses indexes:
// the cost does not grow with the number of runs.
import { phrase } from '../../messages/phrase.js';
import { isStored } from '../../journal/every-run.js';
import { salvageRun } from '../../journal/load-run.js';
import { refusal } from '../../run/request-error.js';
import type { RunRecord, Store } from '../../store/store.js';
import { TAIL_CHARS } from '../../store/run-finder.js';
import type { Io } from '../io.js';
import { dataDirOf, openReader, type DataOption } from '../data-dir.js';
import type { ReadData } from '../open-data.js';
import { reportDamage } from './report-damage.js';
import type { SalvagedRun } from '../../store/salvage.js';

const PREFIX = 'run_';
const SHOWN_MATCHES = 5;

export interface FindOptions {
  // The meaning of "last": the newest run, or the newest that waits. 'keyed' prefers the newest run if it has an answer
  // with this key, so that a repeated answer reaches the same run.
  readonly last?: 'newest' | 'waiting' | 'keyed';
  readonly key?: string;
}

// Searches ids only, so it also finds a run whose row is damaged.
export async function findRunId(store: Store, runRef: string, options: FindOptions = {}): Promise<string> {
  if (await isStored(store, runRef)) return runRef;
  if (runRef === 'last') return findLast(store, options);
  const part = runRef.toUpperCase().replace(/^RUN_/, '');
  if (part.length < TAIL_CHARS) {
    throw refusal('RUN_NOT_FOUND.short', { run: runRef, count: TAIL_CHARS });
  }
  const tails = (await store.listByTail([part.slice(-TAIL_CHARS)])).filter((id) => id.endsWith(part));
  // Lists show the end of an id, so it has priority.
  const matches = tails.length > 0 ? tails : await store.listByPrefix(`${PREFIX}${part}`, SHOWN_MATCHES + 1);
  const [only] = matches;
  if (only !== undefined && matches.length === 1) return only;
  if (only === undefined) throw refusal('RUN_NOT_FOUND.no_match', { run: runRef });
  const isMore = matches.length > SHOWN_MATCHES;
  const count = isMore ? phrase('more_than', { count: SHOWN_MATCHES }) : matches.length;
  const shown = `${matches.slice(0, SHOWN_MATCHES).join(', ')}${isMore ? ' …' : ''}`;
  throw refusal('RUN_NOT_FOUND.ambiguous', { run: runRef, count, runs: shown });
}

async function findLast(store: Store, { last = 'newest', key }: FindOptions): Promise<string> {
  if (last === 'newest') return findNewest(store);
  const [newest] = last === 'keyed' ? await store.listRunIds({ limit: 1 }) : [];
  const isRepeated =
    newest !== undefined && key !== undefined && (await store.loadInteractionByKey(newest, key)) !== null;
  return isRepeated ? newest : findWaiting(store);
}

async function findNewest(store: Store): Promise<string> {
  const [newest] = await store.listRunIds({ limit: 1 });
  if (newest !== undefined) return newest;
  throw refusal('RUN_NOT_FOUND.none');
}

async function findWaiting(store: Store): Promise<string> {
  const [newest] = await store.listRunIds({ status: 'waiting_user', limit: 1 });
  if (newest !== undefined) return newest;
  throw refusal('RUN_NOT_WAITING.none');
}

// Returns the shortest unambiguous end of each id; findRunId finds the run by it.
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

export type WithRunOptions = DataOption & FindOptions & { readonly runRef: string };

// Opens the data for reading, finds the run, calls `work` and closes the data. Reads as much as possible of a damaged
// run, and reports the damage on stderr.
export async function withRun<T>(
  options: WithRunOptions,
  io: Io,
  work: (data: ReadData, run: RunRecord, salvaged: SalvagedRun) => Promise<T>,
): Promise<T> {
  return withRunId(options, io, async (data, id) => {
    const salvaged = await salvageRun(data.store, id);
    reportDamage(salvaged.damage, io);
    return work(data, salvaged.run, salvaged);
  });
}

export async function withRunId<T>(
  options: WithRunOptions,
  io: Io,
  work: (data: ReadData, runId: string) => Promise<T>,
): Promise<T> {
  const { runRef } = options;
  const data = await openReader(options, io);
  if (!data) throw refusal('RUN_NOT_FOUND.no_runs', { run: runRef, path: dataDirOf(options, io) });
  try {
    return await work(data, await findRunId(data.store, runRef, options));
  } finally {
    await data.close();
  }
}
