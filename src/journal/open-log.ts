// Opens a log of a turn for reading, or explains why it is not available.
import type { FileHandle } from 'node:fs/promises';
import { findEngine } from '../engines/registry.js';
import { openFile, UnsafeFileError } from '../files/read-file.js';
import type { RaspEvent, StreamName } from '../rasp/event.js';
import { refusal } from '../run/request-error.js';
import type { RunRecord, Store } from '../store/store.js';
import { everyEventBefore } from './every-event.js';
import { runFolder } from './run-folder.js';
import { logsOf } from './turn-logs.js';

export interface LogName {
  readonly attempt: number;
  readonly stream: StreamName;
}

// Resolves to null if the turn has not started an engine, so there is no log. `dataDir` must be a real path.
export async function openLog(
  store: Store,
  dataDir: string,
  run: Pick<RunRecord, 'run_id' | 'spec' | 'heads'>,
  { attempt, stream }: LogName,
): Promise<FileHandle | null> {
  const path = logsOf(findEngine(run.spec.engine), runFolder(dataDir, run.run_id), attempt)[stream];
  const file = await openFile(path).catch((error: unknown) => {
    if (!(error instanceof UnsafeFileError)) throw error;
    throw refusal('NOT_FOUND.log_replaced', { stream, attempt, run: run.run_id });
  });
  if (file === null && (await hasStarted(store, run, attempt))) {
    throw refusal('FILES_GONE', { stream, attempt, run: run.run_id });
  }
  return file;
}

// Whether the journal names a process of the engine in this attempt. Called only if the log is missing.
async function hasStarted(store: Store, run: Pick<RunRecord, 'run_id' | 'heads'>, attempt: number): Promise<boolean> {
  for await (const event of everyEventBefore(store, run.run_id, run.heads.rasp_seq)) {
    const { event: kind, attempt_number: number }: Partial<RaspEvent> = event;
    if (kind?.type === 'lifecycle.process.spawned' && number === attempt) return true;
  }
  return false;
}
