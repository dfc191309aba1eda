// A log of a turn, for whoever wants to read it: the file itself, or why it cannot be had.
import type { FileHandle } from 'node:fs/promises';
import { findEngine } from '../engines/registry.js';
import { openFile, UnsafeFileError } from '../files/read-file.js';
import { readStoredJson } from '../kernel/stored-json.js';
import type { RaspEvent, StreamName } from '../rasp/event.js';
import { RequestError } from '../run/request-error.js';
import type { RunRecord, Store } from '../store/store.js';
import { runFolder } from './run-folder.js';
import { logsOf } from './turn-logs.js';

export interface LogName {
  readonly attempt: number;
  readonly stream: StreamName;
}

const PAGE = 200;

// Null: the turn has not started an engine, so there is no log. `dataDir` must be a real path.
export async function openLog(
  store: Store,
  dataDir: string,
  run: Pick<RunRecord, 'run_id' | 'spec' | 'heads'>,
  { attempt, stream }: LogName,
): Promise<FileHandle | null> {
  const path = logsOf(findEngine(run.spec.engine), runFolder(dataDir, run.run_id), attempt)[stream];
  const file = await openFile(path).catch((error: unknown) => {
    if (!(error instanceof UnsafeFileError)) throw error;
    throw new RequestError(
      'NOT_FOUND',
      `The ${stream} log of attempt ${attempt} of run ${run.run_id} was replaced by something that is not a ` +
        'regular file. Its events are still stored.',
    );
  });
  if (file === null && (await hasStarted(store, run, attempt))) {
    throw new RequestError(
      'FILES_GONE',
      `The ${stream} log of attempt ${attempt} of run ${run.run_id} was deleted outside of Parley. Its events are ` +
        `still stored: read them with \`parley show ${run.run_id}\`.`,
    );
  }
  return file;
}

// Whether the journal knows of an engine's process in this attempt. Asked only where the log is missing.
async function hasStarted(store: Store, run: Pick<RunRecord, 'run_id' | 'heads'>, attempt: number): Promise<boolean> {
  for (let toSeq = run.heads.rasp_seq; toSeq > 0; toSeq -= PAGE) {
    for (const line of await store.readJournal(run.run_id, 'rasp', {
      fromSeq: Math.max(1, toSeq - PAGE + 1),
      toSeq,
      limit: PAGE,
    })) {
      const { event, attempt_number: number } = readStoredJson(line) as Partial<RaspEvent>;
      if (event?.type === 'lifecycle.process.spawned' && number === attempt) return true;
    }
  }
  return false;
}
