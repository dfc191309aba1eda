// Compares the files in the folder of a run with the database: rasp.jsonl, fcmp.jsonl and the result.
import { join } from 'node:path';
import type { RunFolder } from '../journal/run-folder.js';
import type { WaitForFiles } from '../journal/wait-for-files.js';
import type { RaspData, RaspEvent } from '../rasp/event.js';
import type { RunRecord } from '../store/store.js';
import { failed, passed, type EventCheck, type MadeCheck } from './check.js';
import type { JournalScan } from './check-journal.js';
import { finding } from './findings.js';
import { compareFile } from './measure-log.js';

export interface ScannedJournals {
  readonly rasp: JournalScan;
  readonly fcmp: JournalScan;
}

export interface FilesState {
  readonly waitForFiles: WaitForFiles;
  // Whether the run has stored events that the scans did not read.
  readonly hasGrown: () => Promise<boolean>;
}

// The files are written after each commit, so they may be behind while the run is queued or running, and ahead of the
// scans if a waiting run has continued.
export async function checkFiles(
  { status }: RunRecord,
  folder: RunFolder,
  { rasp, fcmp, waitForFiles, hasGrown }: ScannedJournals & FilesState,
): Promise<MadeCheck> {
  const live = passed('files', finding('files.live'));
  if (status === 'queued' || status === 'running') return live;
  for (const [name, scan] of Object.entries({ 'rasp.jsonl': rasp, 'fcmp.jsonl': fcmp }))
    if (!(await scan.isInFile(join(folder.path, name), waitForFiles)))
      return (await hasGrown()) ? live : failed('files', finding('files.differ', { file: name }));
  return passed('files', finding('files.passed'));
}

export class ResultCheck implements EventCheck {
  readonly #folder: RunFolder;
  #written: RaspData['artifact.result.written'] | null = null;

  constructor(folder: RunFolder) {
    this.#folder = folder;
  }

  event({ event, data }: RaspEvent): void {
    if (event.type === 'artifact.result.written')
      this.#written = data as unknown as RaspData['artifact.result.written'];
  }

  async finish(): Promise<MadeCheck> {
    if (!this.#written) return passed('result', finding('result.none'));
    const { path: file, bytes, sha256 = '' } = this.#written;
    const comparison = await compareFile(join(this.#folder.path, file), { bytes, sha256 });
    if (comparison === 'missing') return failed('result', finding('result.missing', { file }));
    return comparison === 'same'
      ? passed('result', finding('result.passed', { file }))
      : failed('result', finding('result.altered', { file }));
  }
}
