// The checks of parley verify for runs of a data directory, one run at a time. A large run is checked in its own
// process with a bounded heap and a deadline, so that one run cannot end the whole check.
import { existsSync } from 'node:fs';
import { runFolder } from '../../journal/run-folder.js';
import { verifyRun, type MadeCheck } from '../../audit/verify-run.js';
import { waitForFiles } from '../../journal/wait-for-files.js';
import type { RunRecord, Store } from '../../store/store.js';
import type { Io } from '../io.js';
import { databaseUrl } from '../open-data.js';
import { verifyInChild } from '../serving/verify-child.js';
import { hasWriter } from '../writer-alive.js';

const LARGE_EVENTS = 20_000;

// Returns null if the files of the run are on another host. Throws VERIFY_FAILED for a run that needs more memory or
// time than the limit.
export type CheckRun = (store: Store, run: RunRecord) => Promise<readonly MadeCheck[] | null>;

export function createRunCheck(dataDir: string, io: Io, largeEvents = LARGE_EVENTS): CheckRun {
  const isShared = databaseUrl(io) !== null;
  const inChild = verifyInChild(dataDir, io);
  return async (store, run) => {
    if (!hasFiles(dataDir, run, io)) return null;
    if (run.heads.rasp_seq > largeEvents) return inChild(run.run_id, new AbortController().signal);
    return verifyRun(store, dataDir, run, {
      waitForFiles: waitForFiles(io.timers, async () => isShared || hasWriter(dataDir)),
    });
  };
}

// With a shared database, a missing folder may be on another host, so it proves nothing.
export function hasFiles(dataDir: string, { run_id: runId }: Pick<RunRecord, 'run_id'>, io: Io): boolean {
  return databaseUrl(io) === null || existsSync(runFolder(dataDir, runId).path);
}
