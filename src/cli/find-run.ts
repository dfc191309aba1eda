// The run that a person means: its id, the end or the beginning of it, or the word "last".
import { everyRun } from '../orchestrator/every-run.js';
import { RequestError } from '../run/request-error.js';
import type { RunRecord, Store } from '../store/store.js';
import type { Io } from './io.js';
import { dataDirOf, openReader, type DataOption } from './data-dir.js';
import type { ReadData } from './open-data.js';

const FEWEST_CHARS = 4;

export async function findRun(store: Store, meant: string): Promise<RunRecord> {
  const exact = await store.loadRun(meant);
  if (exact) return exact;
  if (meant === 'last') {
    const [newest] = await store.listRuns({ limit: 1 });
    if (newest) return newest;
    throw new RequestError('RUN_NOT_FOUND', 'there is no run yet; parley run starts one');
  }
  const found = meant.length < FEWEST_CHARS ? [] : await listMatching(store, meant.toUpperCase().replace(/^RUN_/, ''));
  const [only] = found;
  if (only && found.length === 1) return only;
  if (found.length > 1) throw new RequestError('RUN_NOT_FOUND', `${found.length} runs are meant by "${meant}": ${found.slice(0, 5).map((run) => run.run_id).join(', ')}${found.length > 5 ? ' …' : ''}`);
  throw new RequestError('RUN_NOT_FOUND', `there is no run "${meant}"; parley ls shows those there are`);
}

async function listMatching(store: Store, part: string): Promise<RunRecord[]> {
  const found: RunRecord[] = [];
  for await (const run of everyRun(store)) if (run.run_id.slice('run_'.length).startsWith(part) || run.run_id.endsWith(part)) found.push(run);
  return found;
}

// Opens the directory to look, finds the run, and closes again when the work is done.
export async function withRun<T>(meant: string, options: DataOption, io: Io, work: (data: ReadData, run: RunRecord) => Promise<T>): Promise<T> {
  const data = await openReader(options, io);
  if (!data) throw new RequestError('RUN_NOT_FOUND', `there is no run "${meant}": nothing was ever run in ${dataDirOf(options, io)}`);
  try {
    return await work(data, await findRun(data.store, meant));
  } finally {
    await data.close();
  }
}
