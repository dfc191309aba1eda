// Checks everything about a stored run that can be checked: digest, order and form of the events, hashes and cover of
// the logs, the path through the state chart, the database rows, the rebuilt conversation and the files. It changes
// nothing. It reads each event and each line of the conversation once, page by page: memory grows with the turns and
// questions of a run, not with its events or logs.
import { parseJson } from '../kernel/json.js';
import { damageIn, isFormError } from '../kernel/stored-json.js';
import { runFolder } from '../journal/run-folder.js';
import type { WaitForFiles } from '../journal/wait-for-files.js';
import type { RaspEvent } from '../rasp/event.js';
import type { RunRecord, Store } from '../store/store.js';
import { failed, passed, type Check, type MadeCheck } from './check.js';
import { ConversationCheck } from './check-conversation.js';
import { ChartCheck, FormCheck, OrderCheck } from './check-events.js';
import { checkFiles, ResultCheck } from './check-files.js';
import { JournalScan } from './check-journal.js';
import { LogChecks } from './check-logs.js';
import { RowsCheck } from './check-rows.js';
import { finding } from './findings.js';
import { loadRows, type RunRows } from './load-rows.js';

export type { Check, MadeCheck };

export interface VerifyProgress {
  readonly events: number;
  readonly total_events: number;
  readonly log_bytes: number;
  // 0 until all events were read.
  readonly total_log_bytes: number;
}

export interface VerifyOptions {
  // Called while the files beside the journal are behind it.
  readonly waitForFiles?: WaitForFiles;
  // Called after each page of the journal and each piece of a log.
  readonly onProgress?: (progress: VerifyProgress) => void;
}

// Checks a live run as it was stored at one point in time, so the check ends however fast the run grows.
export async function verifyRun(
  store: Store,
  dataDir: string,
  run: RunRecord,
  options: VerifyOptions = {},
): Promise<MadeCheck[]> {
  try {
    return await new Verification(store, dataDir, await loadRows(store, run), options).verify();
  } catch (error) {
    return describeDamage(error);
  }
}

// Returns a finding for damaged data. A TypeError, RangeError or SyntaxError means damage as well: Parley can read
// everything that it stored itself.
export function describeDamage(error: unknown): MadeCheck[] {
  const damage = damageIn(error);
  if (damage) return [failed('journal', damage.damage)];
  if (isFormError(error)) return [failed('journal', finding('journal.form', { reason: String(error) }))];
  throw error;
}

class Verification {
  readonly #store: Store;
  readonly #options: VerifyOptions;
  readonly #run: RunRecord;
  readonly #folder;
  readonly #rasp: JournalScan;
  readonly #fcmp: JournalScan;
  readonly #form = new FormCheck();
  readonly #order: OrderCheck;
  readonly #chart: ChartCheck;
  readonly #rows: RowsCheck;
  readonly #logs: LogChecks;
  readonly #conversation: ConversationCheck;
  readonly #result: ResultCheck;
  // The error of a check that could not handle an event. From then on only the form is checked.
  #broken: { readonly error: unknown } | null = null;

  constructor(store: Store, dataDir: string, rows: RunRows, options: VerifyOptions) {
    const { run, lastSeqs } = rows;
    const { run_id: runId } = run;
    this.#store = store;
    this.#options = options;
    this.#run = run;
    this.#folder = runFolder(dataDir, runId);
    this.#rasp = new JournalScan(store, runId, { protocol: 'rasp', lastSeq: lastSeqs.rasp });
    this.#fcmp = new JournalScan(store, runId, { protocol: 'fcmp', lastSeq: lastSeqs.fcmp });
    this.#order = new OrderCheck(runId, () => this.#fcmp.lines);
    this.#chart = new ChartCheck(run);
    this.#rows = new RowsCheck(store, rows, [this.#rasp, this.#fcmp]);
    this.#logs = new LogChecks(run, this.#folder, (bytes, total) => this.#report(bytes, total));
    this.#conversation = new ConversationCheck(runId, this.#fcmp);
    this.#result = new ResultCheck(this.#folder);
  }

  async verify(): Promise<MadeCheck[]> {
    const unreadable = await this.#readJournal();
    if (unreadable) return [unreadable];
    if (this.#broken) return this.#reportBroken(this.#broken.error);
    await this.#conversation.readRest();
    return this.#finish();
  }

  // Returns the finding for a line that is not JSON.
  async #readJournal(): Promise<MadeCheck | null> {
    for await (const lines of this.#rasp.read()) {
      for (const [index, line] of lines.entries()) {
        const event = parseJson(line) as unknown as RaspEvent | undefined;
        if (event === undefined)
          return failed('journal', finding('journal.not_json', { event: this.#rasp.lines - lines.length + index + 1 }));
        this.#form.event(event);
        if (!this.#broken) await this.#check(event).catch((error: unknown) => (this.#broken = { error }));
      }
      this.#report(0, 0);
    }
    return null;
  }

  async #check(event: RaspEvent): Promise<void> {
    this.#order.event(event);
    this.#chart.event(event);
    this.#rows.event(event);
    this.#logs.event(event);
    this.#result.event(event);
    await this.#conversation.event(event);
  }

  // The other checks need events that fit their schema.
  #reportBroken(error: unknown): MadeCheck[] {
    const form = this.#form.finish();
    if (form.ok) throw error;
    return [form];
  }

  async #finish(): Promise<MadeCheck[]> {
    const run = this.#run;
    const { waitForFiles = async () => false } = this.#options;
    await this.#logs.measure();
    return [
      this.#finishDigest(),
      this.#order.finish(run),
      this.#form.finish(),
      this.#chart.finish(run),
      await this.#rows.finish(),
      this.#logs.finishHashes(run),
      this.#logs.finishCover(run),
      this.#conversation.finish(),
      await checkFiles(run, this.#folder, {
        rasp: this.#rasp,
        fcmp: this.#fcmp,
        waitForFiles,
        hasGrown: () => this.#hasGrown(),
      }),
      await this.#result.finish(),
    ];
  }

  #finishDigest(): MadeCheck {
    const { digest } = this.#run.heads;
    return this.#rasp.digest === digest
      ? passed('digest', finding('digest.passed', { digest }))
      : failed('digest', finding('digest.differs', { found: this.#rasp.digest, stored: digest }));
  }

  // Whether events were stored since the rows were loaded.
  async #hasGrown(): Promise<boolean> {
    const now = await this.#store.loadRun(this.#run.run_id);
    return now !== null && now.heads.rasp_seq !== this.#run.heads.rasp_seq;
  }

  #report(logBytes: number, totalLogBytes: number): void {
    this.#options.onProgress?.({
      events: this.#rasp.lines,
      total_events: this.#run.heads.rasp_seq,
      log_bytes: logBytes,
      total_log_bytes: totalLogBytes,
    });
  }
}
