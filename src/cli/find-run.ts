// The run that a person means: its id, the end or the beginning of it, or the word "last".
import { everyRunId, isStored } from '../orchestrator/every-run.js';
import { loadRun, salvageRun } from '../orchestrator/load-run.js';
import { RequestError } from '../run/request-error.js';
import type { RunRecord, Store } from '../store/store.js';
import { safeText } from '../terminal/safe-text.js';
import type { Io } from './io.js';
import { dataDirOf, openReader, type DataOption } from './data-dir.js';
import type { ReadData } from './open-data.js';

const FEWEST_CHARS = 4;

export async function findRun(store: Store, meant: string): Promise<RunRecord> {
  return loadRun(store, await findRunId(store, meant));
}

// By their ids alone: a run that cannot be read is found, too.
export async function findRunId(store: Store, meant: string): Promise<string> {
  if (await isStored(store, meant)) return meant;
  if (meant === 'last') {
    const [newest] = await store.listRunIds({ limit: 1 });
    if (newest !== undefined) return newest;
    throw new RequestError('RUN_NOT_FOUND', 'there is no run yet; parley run starts one');
  }
  const found = meant.length < FEWEST_CHARS ? [] : await listMatching(store, meant.toUpperCase().replace(/^RUN_/, ''));
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  if (found.length > 1) throw new RequestError('RUN_NOT_FOUND', `${found.length} runs are meant by "${meant}": ${found.slice(0, 5).join(', ')}${found.length > 5 ? ' …' : ''}`);
  throw new RequestError('RUN_NOT_FOUND', `there is no run "${meant}"; parley ls shows those there are`);
}

async function listMatching(store: Store, part: string): Promise<string[]> {
  const found: string[] = [];
  for await (const id of everyRunId(store)) if (id.slice('run_'.length).startsWith(part) || id.endsWith(part)) found.push(id);
  return found;
}

// Opens the directory to look, finds the run, and closes again when the work is done. A damaged run is read as far as possible, and
// its damage is reported on stderr.
export async function withRun<T>(meant: string, options: DataOption, io: Io, work: (data: ReadData, run: RunRecord) => Promise<T>): Promise<T> {
  return withRunId(meant, options, io, async (data, id) => {
    const { run, damage } = await salvageRun(data.store, id);
    for (const each of damage) io.stderr.write(`parley: damaged: ${safeText(each)}\n`);
    return work(data, run);
  });
}

export async function withRunId<T>(meant: string, options: DataOption, io: Io, work: (data: ReadData, runId: string) => Promise<T>): Promise<T> {
  const data = await openReader(options, io);
  if (!data) throw new RequestError('RUN_NOT_FOUND', `there is no run "${meant}": nothing was ever run in ${dataDirOf(options, io)}`);
  try {
    return await work(data, await findRunId(data.store, meant));
  } finally {
    await data.close();
  }
}
