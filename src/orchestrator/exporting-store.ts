// Writes each run's journal beside the database too, as plain files for people and their tools: runs/<id>/rasp.jsonl and
// fcmp.jsonl. Appended after the commit, so a crash may leave them short; then they are made whole at the next start. Never read back.
import { appendFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CommitOutcome, CreateOutcome, JournalFlush, NewRun, Protocol, RunChange, Store } from '../store/store.js';
import { makeFolder, runFolder } from './run-folder.js';

const PAGE = 1000;
const PRIVATE = { mode: 0o600 };

// What is committed is committed: a file that could not be written is reported, and made whole at the next start.
export function exportingStore(store: Store, dataDir: string, onTorn: (error: unknown) => void): Store {
  const append = (runId: string, { rasp, fcmp }: JournalFlush): void => {
    try {
      makeFolder(runFolder(dataDir, runId).path);
      appendFileSync(fileOf(dataDir, runId, 'rasp'), rasp.bytes, PRIVATE);
      if (fcmp) appendFileSync(fileOf(dataDir, runId, 'fcmp'), fcmp.bytes, PRIVATE);
    } catch (error) {
      onTorn(error);
    }
  };
  return {
    createRun: async (run: NewRun): Promise<CreateOutcome> => {
      const outcome = await store.createRun(run);
      if (outcome.created) append(run.run_id, run.journal);
      return outcome;
    },
    commit: async (change: RunChange): Promise<CommitOutcome> => {
      const outcome = await store.commit(change);
      if (outcome.committed && change.journal) append(change.run_id, change.journal);
      return outcome;
    },
    deleteRun: (runId) => store.deleteRun(runId),
    loadRun: (runId) => store.loadRun(runId),
    listRuns: (filter) => store.listRuns(filter),
    loadHandle: (requestId) => store.loadHandle(requestId),
    loadInteraction: (id) => store.loadInteraction(id),
    loadPending: (runId) => store.loadPending(runId),
    loadLatest: (runId) => store.loadLatest(runId),
    listPending: (limit) => store.listPending(limit),
    nextDecision: () => store.nextDecision(),
    listQueued: (limit) => store.listQueued(limit),
    readJournal: (runId, protocol, range) => store.readJournal(runId, protocol, range),
    close: () => store.close(),
  };
}

// Left by a clean end; where it is missing, any file may be short.
const CLEAN = 'exports.clean';

export function markExportsClean(dataDir: string): void {
  writeFileSync(join(dataDir, CLEAN), '', PRIVATE);
}

// Whether the last one ended cleanly; from now on nobody has.
export function takeCleanMark(dataDir: string): boolean {
  const clean = existsSync(join(dataDir, CLEAN));
  rmSync(join(dataDir, CLEAN), { force: true });
  return clean;
}

// Makes the files of all runs what is stored, beside other work; false if it was stopped before the end.
export async function repairAllExports(store: Store, dataDir: string, stopped: () => boolean): Promise<boolean> {
  for (let page = await store.listRuns({ limit: PAGE }); page.length > 0; page = await store.listRuns({ limit: PAGE, before: page.at(-1)?.run_id ?? '' })) {
    for (const { run_id: runId } of page) {
      if (stopped()) return false;
      await repair(store, dataDir, runId, 'rasp');
      await repair(store, dataDir, runId, 'fcmp');
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  return true;
}

async function repair(store: Store, dataDir: string, runId: string, protocol: Protocol): Promise<void> {
  const path = fileOf(dataDir, runId, protocol);
  const read = () => store.readJournal(runId, protocol, { limit: Number.MAX_SAFE_INTEGER });
  let written = -1;
  // Until nothing came in between reading and writing.
  for (let lines = await read(); lines.length !== written; lines = await read()) {
    written = lines.length;
    const text = lines.length === 0 ? '' : `${lines.join('\n')}\n`;
    if (existsSync(path) && readFileSync(path, 'utf8') === text) return;
    makeFolder(runFolder(dataDir, runId).path);
    writeFileSync(`${path}.new`, text, PRIVATE);
    renameSync(`${path}.new`, path);
  }
}

function fileOf(dataDir: string, runId: string, protocol: Protocol): string {
  return join(runFolder(dataDir, runId).path, `${protocol}.jsonl`);
}
