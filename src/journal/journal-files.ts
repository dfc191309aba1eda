// Each run's journal beside the database too, as plain files for people and their tools: runs/<id>/rasp.jsonl and
// fcmp.jsonl. Appended a moment after the commit, so a crash may leave them short; the next start repairs them. Never
// read back.
import { closeSync, existsSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Alarm, type Timers } from '../process/timers.js';
import type { JournalFlush, Protocol, RunRecord, Store } from '../store/store.js';
import { BOOT_FILE, readBootId } from '../files/boot-id.js';
import { fileSize, openToAppendSync, readTextSync, SMALL_FILE, UnsafeFileError } from '../files/read-file.js';
import { removeUnfinished } from '../files/replace-file.js';
import { DamagedDataError, damageIn, unlessDamaged } from '../kernel/stored-json.js';
import { everyRun, everyRunId } from './every-run.js';
import { headOf } from './load-run.js';
import { removeFolder } from './remove-folder.js';
import { repairFile } from './repair-file.js';
import { makeFolder, runFolder } from './run-folder.js';

const PAGE_BYTES = 512 * 1024;
// While a turn prints: opening files for every few lines of many turns would cost more than storing them.
const GATHER_MS = 500;
const GATHER_BYTES = 256 * 1024;
// Between attempts to repair files that could not be written.
const REPAIR_MS = 10_000;
const PRIVATE = { mode: 0o600 };
// Left by a clean end; where it is missing, any file may be short. It says in which life of the system that was: the
// files are not waited for until they are on the disk, so after a power cut they may be torn although the end was
// clean.
const CLEAN = 'exports.clean';

// each: with each commit, by the only one who commits. Where hosts share the store, when a turn is over or the run has
// ended: own: by whoever has committed it, for the files are the same for all; local: by whoever has the files of the
// run.
export type FileMode = 'each' | 'own' | 'local';

interface FilesDeps {
  readonly store: Store;
  readonly timers: Timers;
  readonly dataDir: string;
}

interface Gathered {
  readonly rasp: Buffer[];
  readonly fcmp: Buffer[];
  // Whether the first lines of the journal are among them: only then a missing file is a new one.
  readonly isFirst: { readonly rasp: boolean; fcmp: boolean };
  bytes: number;
}

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
  // Committed and not yet in the files.
  readonly #gathered = new Map<string, Gathered>();
  readonly #gathering: Alarm;
  readonly #mending: Alarm;
  #isClosed = false;
  // Being made whole: while it is compared with what is stored, it must not be behind.
  readonly #repairing = new Set<string>();
  readonly #boot: string | null;

  constructor(
    { store, timers, dataDir }: FilesDeps,
    onFailure: (error: unknown) => void,
    mode: FileMode = 'each',
    onWritten: (runId: string, seq: number) => Promise<void> = async () => {},
    bootFile = BOOT_FILE,
  ) {
    // Where there is none, all files are looked at by every start.
    this.#boot = readBootId(bootFile);
    this.#mode = mode;
    this.#gathering = new Alarm(timers);
    this.#mending = new Alarm(timers);
    this.#onWritten = onWritten;
    this.#store = store;
    this.#dataDir = dataDir;
    this.#onFailure = onFailure;
    this.#whole = this.#boot !== null && readClean(join(dataDir, CLEAN)) === this.#boot;
    // From now on nobody has ended cleanly.
    rmSync(join(dataDir, CLEAN), { force: true });
    this.#stopListening = store.onCommitted(({ run_id: runId, journal, status, deleted, origin }) => {
      // Nothing may come back into its folder.
      if (deleted) {
        this.#gathered.delete(runId);
        this.#torn.delete(runId);
      } else if (journal && mode === 'each') this.#gather(runId, journal, status === undefined);
      else if (
        mode !== 'each' &&
        status !== undefined &&
        status !== 'queued' &&
        status !== 'running' &&
        (mode === 'own' ? origin === 'here' : existsSync(runFolder(dataDir, runId).path))
      )
        this.#later(runId);
    });
  }

  // Who looks after the state of a run has changed finds everything up to there.
  #gather(runId: string, { rasp, fcmp }: JournalFlush, mayWait: boolean): void {
    const gathered = this.#gathered.get(runId) ?? {
      rasp: [],
      fcmp: [],
      isFirst: { rasp: rasp.firstSeq === 1, fcmp: false },
      bytes: 0,
    };
    this.#gathered.set(runId, gathered);
    gathered.rasp.push(rasp.bytes);
    if (fcmp?.firstSeq === 1) gathered.isFirst.fcmp = true;
    if (fcmp) gathered.fcmp.push(fcmp.bytes);
    gathered.bytes += rasp.bytes.length + (fcmp?.bytes.length ?? 0);
    if (!mayWait || gathered.bytes >= GATHER_BYTES || this.#repairing.has(runId)) return this.#append(runId, gathered);
    if (!this.#gathering.isSet) this.#gathering.set(GATHER_MS, () => void this.#appendEach());
  }

  // One run after the other, and others come to their turn in between: there may be hundreds.
  async #appendEach(): Promise<void> {
    // Those of now: whoever comes back meanwhile has gathered anew.
    const due = [...this.#gathered.keys()];
    for (const runId of due) {
      const gathered = this.#gathered.get(runId);
      if (gathered) this.#append(runId, gathered);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  // Appends what was committed and is not in the files yet.
  flush(): void {
    this.#gathering.clear();
    for (const [runId, gathered] of this.#gathered) this.#append(runId, gathered);
  }

  // A file that could not be written is reported once and repaired as soon as that works, at the latest at the next
  // start. A file that was removed, or replaced by something else, is written again from the store.
  #append(runId: string, { rasp, fcmp, isFirst }: Gathered): void {
    this.#gathered.delete(runId);
    if (this.#torn.has(runId)) return;
    try {
      appendPieces(this.#pathOf(runId, 'rasp'), rasp, isFirst.rasp);
      if (fcmp.length > 0) appendPieces(this.#pathOf(runId, 'fcmp'), fcmp, isFirst.fcmp);
    } catch (error) {
      if (error instanceof UnsafeFileError || (error as NodeJS.ErrnoException).code === 'ENOENT')
        return this.#later(runId);
      this.#fail(runId, error);
    }
  }

  #fail(runId: string, error: unknown): void {
    if (this.#torn.size === 0) this.#onFailure(error);
    this.#torn.add(runId);
    this.#repairLater();
  }

  // Tries again until the disk takes the files: it may have been full for a while.
  #repairLater(): void {
    if (this.#mending.isSet || this.#isClosed) return;
    this.#mending.set(REPAIR_MS, () => {
      const repaired = [...this.#torn].map((runId) => this.write(runId).catch(() => this.#torn.add(runId)));
      void Promise.all(repaired).then(() => this.#torn.size > 0 && this.#repairLater());
    });
  }

  // Writes the files of a run anew if they were removed, or replaced by something that is no file. Cheap where they are
  // there.
  async restore(runId: string): Promise<void> {
    if (this.#mode !== 'each' || this.#gathered.has(runId)) return;
    // What cannot be read cannot be written again; verify reports it.
    const { heads } = (await unlessDamaged(this.#store.loadRun(runId))) ?? { heads: { rasp_seq: 0, fcmp_seq: 0 } };
    const expected = [
      ['rasp', heads.rasp_seq],
      ['fcmp', heads.fcmp_seq],
    ] as const;
    for (const [protocol, seq] of expected)
      if (seq > 0 && (await fileSize(this.#pathOf(runId, protocol))) === null) return this.write(runId);
  }

  // Makes the files of all runs what is stored, beside other work, if the last one did not end cleanly. One that cannot
  // be written is told after all the others were looked at.
  async repair(stopped: () => boolean): Promise<void> {
    if (this.#mode !== 'each') return;
    if (this.#whole) return this.#restoreWaiting(stopped);
    let failure: unknown;
    for await (const runId of everyRunId(this.#store)) {
      if (stopped()) return;
      await this.#repairIfThere(runId).catch((error: unknown) => {
        // What is damaged is not mended by looking again at every start; verify tells of it.
        if (damageIn(error)) this.#onFailure(error);
        else failure ??= error;
      });
    }
    if (failure !== undefined) throw failure;
    this.#whole = true;
  }

  // After a clean end the files are whole, unless somebody removed them since. Those of runs that wait are looked for
  // at a start; those of ended runs, of which there may be a million, when somebody asks for them.
  async #restoreWaiting(stopped: () => boolean): Promise<void> {
    for await (const { run_id: runId } of everyRun(this.#store, (_runId, error) => this.#onFailure(error), {
      status: 'waiting_user',
    })) {
      if (stopped()) return;
      await this.restore(runId).catch((error: unknown) => this.#onFailure(error));
    }
  }

  #later(runId: string): void {
    void this.write(runId).catch((error: unknown) => this.#fail(runId, error));
  }

  // Makes the files of a run what is stored, one run after the other, and tells how far they go.
  write(runId: string): Promise<void> {
    const written = this.#work.then(async () => {
      const seq = await this.#repairIfThere(runId);
      if (seq !== null) await this.#onWritten(runId, seq);
    });
    this.#work = written.catch(() => {});
    return written;
  }

  // Answers how far the files go at least; null: there is no such run any more.
  async #repairIfThere(runId: string): Promise<number | null> {
    const run = await this.#store.loadRun(runId);
    if (!run) return null;
    let failure: unknown = null;
    await this.#repairRun(run).catch((error: unknown) => (failure = error));
    if (await this.#store.loadRun(runId)) {
      if (failure !== null) throw failure;
      return run.heads.rasp_seq;
    }
    // Deleted meanwhile, it must not come back as a folder.
    this.#torn.delete(runId);
    await removeFolder(runFolder(this.#dataDir, runId).path);
    return null;
  }

  async #repairRun({ run_id: runId, heads }: RunRecord): Promise<void> {
    makeFolder(runFolder(this.#dataDir, runId).path);
    const gathered = this.#gathered.get(runId);
    if (gathered) this.#append(runId, gathered);
    this.#repairing.add(runId);
    // What is torn is found.
    this.#torn.delete(runId);
    try {
      for (const protocol of ['rasp', 'fcmp'] as const) {
        const path = this.#pathOf(runId, protocol);
        // Where others write too, they may be at it.
        if (this.#mode === 'each') removeUnfinished(path);
        await repairFile(path, () => this.#read(runId, protocol, headOf({ heads }, protocol)));
      }
    } catch (error) {
      if (!damageIn(error)) this.#torn.add(runId);
      throw error;
    } finally {
      this.#repairing.delete(runId);
    }
  }

  // Throws for a journal that ends before the head of its run: the file may be the only copy of the rest.
  async *#read(runId: string, protocol: Protocol, head: number): AsyncGenerator<Buffer> {
    for (let seq = 0; ;) {
      // There is room for other work in between.
      await new Promise((resolve) => setImmediate(resolve));
      const lines = await this.#store.readLines(runId, protocol, seq, PAGE_BYTES);
      if (lines === null && seq < head)
        throw new DamagedDataError(
          `${protocol} events ${seq + 1} to ${head} of run ${runId} are missing from the journal`,
        );
      if (lines === null) return;
      seq = lines.lastSeq;
      yield lines.bytes;
    }
  }

  async close(): Promise<void> {
    this.#stopListening();
    this.#isClosed = true;
    this.#mending.clear();
    this.flush();
    await this.#work;
    if (this.#mode !== 'each' || !this.#whole || this.#torn.size > 0 || this.#boot === null) return;
    try {
      writeFileSync(join(this.#dataDir, CLEAN), this.#boot, PRIVATE);
    } catch (error) {
      // The next start looks at all files; that keeps nobody from ending.
      this.#onFailure(error);
    }
  }

  #pathOf(runId: string, protocol: Protocol): string {
    return join(runFolder(this.#dataDir, runId).path, `${protocol}.jsonl`);
  }
}

function appendPieces(path: string, pieces: readonly Buffer[], isFirst: boolean): void {
  const file = openIn(path, isFirst);
  try {
    for (const piece of pieces) for (let at = 0; at < piece.length;) at += writeSync(file, piece, at);
  } finally {
    closeSync(file);
  }
}

// The first time its folder may be missing. Later a missing file was removed, and must not begin in the middle.
function openIn(path: string, isFirst: boolean): number {
  try {
    return openToAppendSync(path, { creates: isFirst });
  } catch (error) {
    if (!isFirst || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    makeFolder(dirname(path));
    return openToAppendSync(path);
  }
}

function readClean(path: string): string | null {
  try {
    return readTextSync(path, SMALL_FILE);
  } catch {
    // For whatever reason: then nothing is known.
    return null;
  }
}
