// Each run's journal beside the database too, as plain files for people and their tools: runs/<id>/rasp.jsonl and fcmp.jsonl.
// Appended after the commit, so a crash may leave them short; then they are made whole at the next start. Never read back.
import { appendFileSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JournalFlush, Protocol, Store } from '../store/store.js';
import { everyRun } from './every-run.js';
import { removeFolder } from './remove-folder.js';
import { repairFile } from './repair-file.js';
import { makeFolder, runFolder } from './run-folder.js';

const PAGE = 500;
const PRIVATE = { mode: 0o600 };
// Left by a clean end; where it is missing, any file may be short.
const CLEAN = 'exports.clean';

// each: with each commit, by the only one who commits. Where hosts share the store, when a turn is over or the run has ended: own: by whoever
// has committed it, for the files are the same for all; local: by whoever has the files of the run.
export type FileMode = 'each' | 'own' | 'local';

export class JournalFiles {
  readonly #store: Store;
  readonly #dataDir: string;
  readonly #onFailure: (error: unknown) => void;
  readonly #stopListening: () => void;
  readonly #mode: FileMode;
  readonly #onWritten: (runId: string, seq: number) => Promise<void>;
  // Those that are being made whole, one after the other.
  #work: Promise<void> = Promise.resolve();
  // Whether every file is what is stored, as far as is known.
  #whole: boolean;
  // Runs with a file that could not be written: nothing more is appended behind a line that may be torn.
  readonly #torn = new Set<string>();

  constructor(store: Store, dataDir: string, onFailure: (error: unknown) => void, mode: FileMode = 'each', onWritten: (runId: string, seq: number) => Promise<void> = async () => {}) {
    this.#mode = mode;
    this.#onWritten = onWritten;
    this.#store = store;
    this.#dataDir = dataDir;
    this.#onFailure = onFailure;
    this.#whole = existsSync(join(dataDir, CLEAN));
    // From now on nobody has ended cleanly.
    rmSync(join(dataDir, CLEAN), { force: true });
    this.#stopListening = store.onCommitted(({ run_id: runId, journal, status, origin }) => {
      if (journal && mode === 'each') this.#append(runId, journal);
      else if (mode !== 'each' && status !== undefined && status !== 'queued' && status !== 'running' && (mode === 'own' ? origin === 'here' : existsSync(runFolder(dataDir, runId).path))) this.#later(runId);
    });
  }

  // What is committed is committed: a file that could not be written is reported once, and made whole at the next start.
  #append(runId: string, { rasp, fcmp }: JournalFlush): void {
    if (this.#torn.has(runId)) return;
    try {
      makeFolder(runFolder(this.#dataDir, runId).path);
      appendFileSync(this.#pathOf(runId, 'rasp'), rasp.bytes, PRIVATE);
      if (fcmp) appendFileSync(this.#pathOf(runId, 'fcmp'), fcmp.bytes, PRIVATE);
    } catch (error) {
      if (this.#torn.size === 0) this.#onFailure(error);
      this.#torn.add(runId);
    }
  }

  // Makes the files of all runs what is stored, beside other work, if the last one did not end cleanly. One that cannot be
  // written is told after all the others were looked at.
  async repair(stopped: () => boolean): Promise<void> {
    if (this.#whole || this.#mode !== 'each') return;
    let failure: unknown;
    for await (const { run_id: runId } of everyRun(this.#store)) {
      if (stopped()) return;
      await this.#repairRun(runId).catch((error: unknown) => (failure ??= error));
    }
    if (failure !== undefined) throw failure;
    this.#whole = true;
  }

  #later(runId: string): void {
    void this.write(runId).catch((error: unknown) => this.#onFailure(error));
  }

  // Makes the files of a run what is stored, one run after the other, and tells how far they go.
  write(runId: string): Promise<void> {
    const written = this.#work.then(async () => {
      const run = await this.#store.loadRun(runId);
      if (!run) return;
      await this.#repairRun(runId);
      await this.#onWritten(runId, run.heads.rasp_seq);
      // Deleted meanwhile, it must not come back as a folder.
      if (!(await this.#store.loadRun(runId))) await removeFolder(runFolder(this.#dataDir, runId).path);
    });
    this.#work = written.catch(() => {});
    return written;
  }

  async #repairRun(runId: string): Promise<void> {
    makeFolder(runFolder(this.#dataDir, runId).path);
    for (const protocol of ['rasp', 'fcmp'] as const) await repairFile(this.#pathOf(runId, protocol), () => this.#read(runId, protocol));
  }

  async *#read(runId: string, protocol: Protocol): AsyncGenerator<Buffer> {
    for (let seq = 0; ; ) {
      // There is room for other work in between.
      await new Promise((resolve) => setImmediate(resolve));
      const lines = await this.#store.readJournal(runId, protocol, { fromSeq: seq + 1, limit: PAGE });
      if (lines.length === 0) return;
      seq += lines.length;
      yield Buffer.from(`${lines.join('\n')}\n`);
    }
  }

  async close(): Promise<void> {
    this.#stopListening();
    await this.#work;
    if (this.#mode !== 'each' || !this.#whole || this.#torn.size > 0) return;
    try {
      writeFileSync(join(this.#dataDir, CLEAN), '', PRIVATE);
    } catch (error) {
      // The next start looks at all files; that keeps nobody from ending.
      this.#onFailure(error);
    }
  }

  #pathOf(runId: string, protocol: Protocol): string {
    return join(runFolder(this.#dataDir, runId).path, `${protocol}.jsonl`);
  }
}
