// Writes each run's journal beside the database too, as plain files for people and their tools: runs/<id>/rasp.jsonl and
// fcmp.jsonl. Appended after the commit, so a crash may leave them short; repairExports makes them whole. Never read back.
import { appendFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CommitOutcome, CreateOutcome, JournalFlush, NewRun, Protocol, RunChange, RunRecord, Store } from '../store/store.js';
import { makeFolder, runFolder } from './run-folder.js';

const PAGE = 1000;
const PRIVATE = { mode: 0o600 };

export function exportingStore(store: Store, dataDir: string): Store {
  return {
    createRun: async (run: NewRun): Promise<CreateOutcome> => {
      const outcome = await store.createRun(run);
      if (outcome.created) {
        makeFolder(runFolder(dataDir, run.run_id).path);
        append(dataDir, run.run_id, run.journal);
      }
      return outcome;
    },
    commit: async (change: RunChange): Promise<CommitOutcome> => {
      const outcome = await store.commit(change);
      if (outcome.committed && change.journal) append(dataDir, change.run_id, change.journal);
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

function append(dataDir: string, runId: string, { rasp, fcmp }: JournalFlush): void {
  appendFileSync(fileOf(dataDir, runId, 'rasp'), rasp.bytes, PRIVATE);
  if (fcmp) appendFileSync(fileOf(dataDir, runId, 'fcmp'), fcmp.bytes, PRIVATE);
}

// Left by a clean end; where it is missing, any file may be short.
const CLEAN = 'exports.clean';

export function markExportsClean(dataDir: string): void {
  writeFileSync(join(dataDir, CLEAN), '', PRIVATE);
}

// After a crash every run is looked at; after a clean end none.
export async function repairAllExports(store: Store, dataDir: string): Promise<void> {
  if (existsSync(join(dataDir, CLEAN))) {
    rmSync(join(dataDir, CLEAN));
    return;
  }
  for (let page = await store.listRuns({ limit: PAGE }); page.length > 0; page = await store.listRuns({ limit: PAGE, before: page.at(-1)?.run_id ?? '' })) {
    for (const run of page) await repairExports(store, dataDir, run);
  }
}

// Writes the files of a run anew where they are not what is stored.
export async function repairExports(store: Store, dataDir: string, run: RunRecord): Promise<void> {
  await repair(store, dataDir, run, 'rasp', run.heads.rasp_seq);
  await repair(store, dataDir, run, 'fcmp', run.heads.fcmp_seq);
}

async function repair(store: Store, dataDir: string, run: RunRecord, protocol: Protocol, head: number): Promise<void> {
  const path = fileOf(dataDir, run.run_id, protocol);
  const lines: string[] = [];
  while (lines.length < head) lines.push(...(await store.readJournal(run.run_id, protocol, { fromSeq: lines.length + 1, limit: PAGE })));
  const text = lines.length === 0 ? '' : `${lines.join('\n')}\n`;
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return;
  makeFolder(runFolder(dataDir, run.run_id).path);
  writeFileSync(`${path}.new`, text, PRIVATE);
  renameSync(`${path}.new`, path);
}

function fileOf(dataDir: string, runId: string, protocol: Protocol): string {
  return join(runFolder(dataDir, runId).path, `${protocol}.jsonl`);
}
