// Writes each run's journal as plain files next to the database, for people and their tools: runs/<id>/rasp.jsonl and
// fcmp.jsonl. Lines are appended shortly after the commit, so a crash may leave the files short; the next start repairs
// them. Parley never reads them back.
import type { FileLayout } from '../ownership/ownership.js';
import { closeSync, existsSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Alarm, type Timers } from '../process/timers.js';
import type { JournalFlush, Lines, Protocol, RunRecord, Store } from '../store/store.js';
import { BOOT_FILE, readBootId } from '../files/boot-id.js';
import { fileSize, openToAppendSync, readTextSync, SMALL_FILE, UnsafeFileError } from '../files/read-file.js';
import { removeUnfinished } from '../files/replace-file.js';
import { damageText } from '../kernel/damage-texts.js';
import { DamagedDataError, damageIn, unlessDamaged } from '../kernel/stored-json.js';
import { everyRun, everyRunId } from './every-run.js';
import { headOf } from './load-run.js';
import { removeFolder } from './remove-folder.js';
import { repairFile } from './repair-file.js';
import { makeFolder, runFolder } from './run-folder.js';

const PAGE_BYTES = 512 * 1024;
// Lines are collected while a turn prints: opening files for every few lines of many turns would cost more than storing
// them.
const GATHER_MS = 500;
// Then the runs are appended to their files in steps: all at once, they would keep the disk busy, and commits of other
// work would wait for it.
const STEPS = 50;
const STEP_MS = 10;
const GATHER_BYTES = 256 * 1024;
// The pause between attempts to repair files that could not be written.
const REPAIR_MS = 10_000;
const PRIVATE = { mode: 0o600 };
// A clean shutdown leaves this file; if it is missing, any journal file may be short. It contains the boot id: journal
// files are not synced, so after a power failure they may be torn although the shutdown was clean.
const CLEAN = 'exports.clean';

interface FilesDeps {
  readonly store: Store;
  readonly timers: Timers;
  readonly dataDir: string;
}

interface Gathered {
  readonly rasp: Buffer[];
  readonly fcmp: Buffer[];
  // Whether the first lines of the journal are included: only then may a missing file be created.
  readonly isFirst: { readonly rasp: boolean; fcmp: boolean };
  bytes: number;
}

export class JournalFiles {
  readonly #store: Store;
  readonly #dataDir: string;
  readonly #onFailure: (error: unknown) => void;
  readonly #stopListening: () => void;
  // single: lines are appended with each commit. Otherwise the files are written from the store when a run stops
  // running.
  readonly #layout: FileLayout;
  readonly #onWritten: (runId: string, seq: number) => Promise<void>;
  // Repairs run one after the other.
  #work: Promise<void> = Promise.resolve();
  // Whether every file is known to match the store.
  #whole: boolean;
  // Runs with a file that could not be written. Nothing is appended to it, because its last line may be torn.
  readonly #torn = new Set<string>();
  // Committed lines that are not in the files yet.
  readonly #gathered = new Map<string, Gathered>();
  readonly #gathering: Alarm;
  readonly #mending: Alarm;
  #isClosed = false;
  // Runs under repair. While a file is compared with the store, it must have all committed lines.
  readonly #repairing = new Set<string>();
  readonly #boot: string | null;

  constructor(
    { store, timers, dataDir }: FilesDeps,
    onFailure: (error: unknown) => void,
    layout: FileLayout = 'single',
    onWritten: (runId: string, seq: number) => Promise<void> = async () => {},
    bootFile = BOOT_FILE,
  ) {
    // Without a boot id, every start checks all files.
    this.#boot = readBootId(bootFile);
    this.#layout = layout;
    this.#gathering = new Alarm(timers);
    this.#mending = new Alarm(timers);
    this.#onWritten = onWritten;
    this.#store = store;
    this.#dataDir = dataDir;
    this.#onFailure = onFailure;
    this.#whole = this.#boot !== null && readClean(join(dataDir, CLEAN)) === this.#boot;
    // From now on, only close() can record a clean shutdown.
    rmSync(join(dataDir, CLEAN), { force: true });
    this.#stopListening = store.onCommitted(({ run_id: runId, journal, status, deleted, origin }) => {
      // A deleted run's folder must not be created again.
      if (deleted) {
        this.#gathered.delete(runId);
        this.#torn.delete(runId);
      } else if (journal && layout === 'single') this.#gather(runId, journal, status === undefined);
      else if (
        layout !== 'single' &&
        status !== undefined &&
        status !== 'queued' &&
        status !== 'running' &&
        (layout === 'shared' ? origin === 'here' : existsSync(runFolder(dataDir, runId).path))
      )
        this.#later(runId);
    });
  }

  // A reader that sees a change of state must find everything up to it in the files, so such lines are written at once.
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
    // Copies, because the bytes of a commit are valid only during this call.
    gathered.rasp.push(Buffer.from(gathered.rasp.pop() ?? rasp.bytes));
    if (fcmp) gathered.fcmp.push(Buffer.from(gathered.fcmp.pop() ?? fcmp.bytes));
    if (!this.#gathering.isSet) this.#gathering.set(GATHER_MS, () => this.#appendAll());
  }

  // A run that commits again in the meantime is collected for the next round.
  #appendAll(): void {
    const due = [...this.#gathered.keys()];
    this.#appendPart(due, Math.ceil(due.length / STEPS));
  }

  #appendPart(due: readonly string[], size: number): void {
    for (const runId of due.slice(0, size)) {
      const gathered = this.#gathered.get(runId);
      if (gathered) this.#append(runId, gathered);
    }
    const rest = due.slice(size);
    if (rest.length > 0) this.#gathering.set(STEP_MS, () => this.#appendPart(rest, size));
    else if (this.#gathered.size > 0) this.#gathering.set(GATHER_MS, () => this.#appendAll());
  }

  // Appends committed lines that are not in the files yet.
  flush(): void {
    this.#gathering.clear();
    for (const [runId, gathered] of this.#gathered) this.#append(runId, gathered);
  }

  // Reports a file that could not be written once, and repairs it as soon as possible, at the latest at the next start.
  // A file that was removed or replaced is rewritten from the store.
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

  // Retries until the files can be written: the disk may be full for a while.
  #repairLater(): void {
    if (this.#mending.isSet || this.#isClosed) return;
    this.#mending.set(REPAIR_MS, () => {
      const repaired = [...this.#torn].map((runId) => this.write(runId).catch(() => this.#torn.add(runId)));
      void Promise.all(repaired).then(() => this.#torn.size > 0 && this.#repairLater());
    });
  }

  // Rewrites the files of a run if they were removed or replaced by something that is not a file. Cheap if they exist.
  async restore(runId: string): Promise<void> {
    if (this.#layout !== 'single' || this.#gathered.has(runId)) return;
    // A damaged run cannot be rewritten; verify reports it.
    const { heads } = (await unlessDamaged(this.#store.loadRun(runId))) ?? { heads: { rasp_seq: 0, fcmp_seq: 0 } };
    const expected = [
      ['rasp', heads.rasp_seq],
      ['fcmp', heads.fcmp_seq],
    ] as const;
    for (const [protocol, seq] of expected)
      if (seq > 0 && (await fileSize(this.#pathOf(runId, protocol))) === null) return this.write(runId);
  }

  // If the last shutdown was not clean, repairs the files of all runs in the background. Throws the first failure after
  // all other runs were checked.
  async repair(stopped: () => boolean): Promise<void> {
    if (this.#layout !== 'single') return;
    if (this.#whole) return this.#restoreWaiting(stopped);
    let failure: unknown;
    for await (const runId of everyRunId(this.#store)) {
      if (stopped()) return;
      await this.#inTurn(() => this.#repairIfThere(runId)).catch((error: unknown) => {
        // Checking damaged data again at every start does not repair it; verify reports it.
        if (damageIn(error)) this.#onFailure(error);
        else failure ??= error;
      });
    }
    if (failure !== undefined) throw failure;
    this.#whole = true;
  }

  // After a clean shutdown the files are complete, unless a person removed them. Files of waiting runs are checked at
  // startup; files of ended runs, of which there may be a million, when they are requested.
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

  // Makes the files of a run match the store, and reports the last event in them.
  write(runId: string): Promise<void> {
    return this.#inTurn(async () => {
      const seq = await this.#repairIfThere(runId);
      if (seq !== null) await this.#onWritten(runId, seq);
    });
  }

  // One repair at a time: two repairs of the same run would remove each other's new file.
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#work.then(work);
    this.#work = done.then(
      () => {},
      () => {},
    );
    return done;
  }

  // Resolves to the last event that the files contain at least; null if the run no longer exists.
  async #repairIfThere(runId: string): Promise<number | null> {
    const run = await this.#store.loadRun(runId);
    if (!run) return null;
    let failure: unknown = null;
    await this.#repairRun(run).catch((error: unknown) => (failure = error));
    if (await this.#store.loadRun(runId)) {
      if (failure !== null) throw failure;
      return run.heads.rasp_seq;
    }
    // The run was deleted in the meantime, so its folder must not stay.
    this.#torn.delete(runId);
    await removeFolder(runFolder(this.#dataDir, runId).path);
    return null;
  }

  async #repairRun({ run_id: runId, heads }: RunRecord): Promise<void> {
    makeFolder(runFolder(this.#dataDir, runId).path);
    const gathered = this.#gathered.get(runId);
    if (gathered) this.#append(runId, gathered);
    this.#repairing.add(runId);
    // The comparison detects a torn line.
    this.#torn.delete(runId);
    try {
      for (const protocol of ['rasp', 'fcmp'] as const) {
        const path = this.#pathOf(runId, protocol);
        // With shared files, another host may be writing its new file.
        if (this.#layout === 'single') removeUnfinished(path);
        const head = headOf({ heads }, protocol);
        await repairFile(path, (afterSeq) => this.#readPage(runId, { protocol, afterSeq, head }));
      }
    } catch (error) {
      if (!damageIn(error)) {
        this.#torn.add(runId);
        this.#repairLater();
      }
      throw error;
    } finally {
      this.#repairing.delete(runId);
    }
  }

  // Throws if the journal ends before the head of its run: the file may be the only copy of the rest.
  async #readPage(
    runId: string,
    { protocol, afterSeq, head }: { protocol: Protocol; afterSeq: number; head: number },
  ): Promise<Lines | null> {
    // Yields to other work.
    await new Promise((resolve) => setImmediate(resolve));
    const lines = await this.#store.readLines(runId, protocol, afterSeq, PAGE_BYTES);
    if (lines === null && afterSeq < head)
      throw new DamagedDataError(
        damageText('damage.missing_of_run', { journal: protocol, from: afterSeq + 1, to: head, run: runId }),
      );
    return lines;
  }

  async close(): Promise<void> {
    this.#stopListening();
    this.#isClosed = true;
    this.#mending.clear();
    this.flush();
    await this.#work;
    if (this.#layout !== 'single' || !this.#whole || this.#torn.size > 0 || this.#boot === null) return;
    try {
      writeFileSync(join(this.#dataDir, CLEAN), this.#boot, PRIVATE);
    } catch (error) {
      // A failure must not prevent the shutdown: the next start checks all files.
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

// Only the first lines may create the folder and the file. Later, a missing file was removed and must not start in the
// middle of the journal.
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
    // If the marker cannot be read for any reason, the shutdown counts as unclean.
    return null;
  }
}
