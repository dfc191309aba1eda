// Checks everything about a stored run that can be checked: digest, order, form, hashes and cover of the logs, the walk
// over the chart, the rows beside the journal, the conversation rebuilt, the files beside. It reads only, and it tells
// of all it finds.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { findEngine } from '../engines/registry.js';
import { projectConversation } from '../fcmp/fold.js';
import { fileSize, readBytes, UnsafeFileError } from '../files/read-file.js';
import { canonicalText, parseJson } from '../kernel/json.js';
import { damageIn } from '../kernel/stored-json.js';
import { measureCover } from '../rasp/cover.js';
import type { RaspData, RaspEvent, StreamName } from '../rasp/event.js';
import { explainRasp } from '../rasp/validate.js';
import { CHART, INITIAL_STATE, isTerminal, STICKY_CHART } from '../run/statechart.js';
import type { RunRecord, Store } from '../store/store.js';
import { runFolder, type RunFolder } from '../journal/run-folder.js';
import { measureLog } from '../journal/measure-log.js';
import { logsOf } from '../journal/turn-logs.js';
import { explainRows } from './verify-rows.js';
import type { WaitForFiles } from '../journal/wait-for-files.js';

export interface Check {
  readonly name: string;
  readonly ok: boolean;
  // What was found: a figure if all is well, what is wrong if not.
  readonly finding: string;
}

interface Evidence {
  readonly run: RunRecord;
  readonly folder: RunFolder;
  readonly rasp: readonly RaspEvent[];
  readonly raspLines: readonly string[];
  readonly fcmpLines: readonly string[];
  readonly digest: string;
  readonly rows: Awaited<ReturnType<typeof explainRows>>;
  readonly reads: readonly MeasuredRead[];
  // Another host has ended it: what the one before may still have printed into a log is not the run's.
  readonly wasTakenOver: boolean;
}

const STREAMS = ['stdout', 'stderr'] as const;
const ALL = { limit: Number.MAX_SAFE_INTEGER, withGaps: true };

// Of a run that is being played it checks what was stored at one moment. `waitForFiles` is asked as long as the files
// beside the journal are behind it.
export async function verifyRun(
  store: Store,
  dataDir: string,
  run: RunRecord,
  waitForFiles: WaitForFiles = async () => false,
): Promise<Check[]> {
  for (let seen = run; ;) {
    const checks = await verifySeen(store, dataDir, seen, waitForFiles).catch(tellDamage);
    const now = await store.loadRun(run.run_id);
    if (!now || now.heads.rasp_seq === seen.heads.rasp_seq) return checks;
    seen = now;
  }
}

// What cannot be read at all is found, too. Nor is anything that is no error of the system an answer: of what Parley
// stored, all can be read.
export function tellDamage(error: unknown): Check[] {
  const damage = damageIn(error);
  if (damage) return [bad('journal', damage.message)];
  if (error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError)
    return [bad('journal', `what is stored cannot be understood (${String(error)})`)];
  throw error;
}

async function verifySeen(store: Store, dataDir: string, run: RunRecord, waitForFiles: WaitForFiles): Promise<Check[]> {
  const raspLines = await store.readJournal(run.run_id, 'rasp', ALL);
  const parsed = raspLines.map((line) => parseJson(line) as unknown as RaspEvent | undefined);
  const rasp = parsed.filter((event) => event !== undefined);
  const unreadable = parsed.findIndex((event) => event === undefined);
  if (unreadable >= 0) return [bad('journal', `event ${unreadable + 1} is not JSON`)];
  try {
    return await checkAll(store, dataDir, run, { rasp, raspLines }, waitForFiles);
  } catch (error) {
    // Of events that are none, not everything can be asked.
    const form = checkForm({ rasp });
    if (form.ok) throw error;
    return [form];
  }
}

async function checkAll(
  store: Store,
  dataDir: string,
  run: RunRecord,
  { rasp, raspLines }: Pick<Evidence, 'rasp' | 'raspLines'>,
  waitForFiles: WaitForFiles,
): Promise<Check[]> {
  const folder = runFolder(dataDir, run.run_id);
  // Each turn that begins has an epoch of its own; only a take-over makes one more.
  const begun = rasp.filter(
    ({ event, data }) => event.type === 'lifecycle.state.changed' && data.to === 'running',
  ).length;
  const fcmpLines = await store.readJournal(run.run_id, 'fcmp', ALL);
  const evidence: Evidence = {
    run,
    wasTakenOver: run.epoch > begun,
    folder,
    reads: await measureReads(readsOf(run, folder, rasp)),
    rasp,
    raspLines,
    fcmpLines,
    digest: await store.recomputeDigest(run.run_id),
    rows: await explainRows(store, run, rasp, fcmpLines),
  };
  if (!isPlayed(run))
    for (const [name, lines] of journalFiles(evidence))
      await waitUntilLong(join(folder.path, name), lines, waitForFiles);
  const checks = [
    checkDigest,
    checkOrder,
    checkForm,
    checkChart,
    checkRows,
    checkHashes,
    checkCover,
    checkConversation,
  ].map((check) => check(evidence));
  return [...checks, await checkFiles(evidence), await checkResult(evidence)];
}

// The conversation as the journal gives it, and where the stored one differs: its seq, or null.
export function rebuildConversation(
  runId: string,
  rasp: readonly RaspEvent[],
  stored: readonly string[],
): { readonly lines: readonly string[]; readonly differsAt: number | null } {
  const lines = projectConversation(runId, rasp);
  const length = Math.max(lines.length, stored.length);
  for (let index = 0; index < length; index += 1)
    if (lines[index] !== stored[index]) return { lines, differsAt: index + 1 };
  return { lines, differsAt: null };
}

function good(name: string, finding: string): Check {
  return { name, ok: true, finding };
}

function bad(name: string, finding: string): Check {
  return { name, ok: false, finding };
}

function checkDigest({ run, digest }: Evidence): Check {
  return digest === run.heads.digest
    ? good('digest', digest)
    : bad('digest', `the stored events give ${digest}, the run says ${run.heads.digest}`);
}

function checkOrder({ run, rasp, fcmpLines }: Evidence): Check {
  const gap = rasp.findIndex((event, index) => event.seq !== index + 1 || event.run_id !== run.run_id);
  if (gap >= 0) return bad('order', `after event ${gap} comes another than ${gap + 1}`);
  const back = rasp.findIndex((event, index) => index > 0 && event.ts < (rasp[index - 1]?.ts ?? ''));
  if (back >= 0) return bad('order', `the time of event ${back + 1} is before that of the one before`);
  if (rasp.length !== run.heads.rasp_seq || fcmpLines.length !== run.heads.fcmp_seq)
    return bad(
      'order',
      `${rasp.length} and ${fcmpLines.length} events are stored, the run says ${run.heads.rasp_seq} and ` +
        `${run.heads.fcmp_seq}`,
    );
  return good('order', `${rasp.length} events without a gap`);
}

function checkForm({ rasp }: Pick<Evidence, 'rasp'>): Check {
  for (const [index, event] of rasp.entries()) {
    const problem = explainRasp(event);
    if (problem !== null) return bad('form', `event ${index + 1}: ${problem}`);
  }
  return good('form', 'every event fits rasp/1.0');
}

function checkChart({ run, rasp }: Evidence): Check {
  let state: string = INITIAL_STATE;
  let steps = 0;
  let last: Partial<RaspData['lifecycle.state.changed']> = {};
  for (const { event, data, seq } of rasp) {
    if (event.type !== 'lifecycle.state.changed') continue;
    const change = data as unknown as RaspData['lifecycle.state.changed'];
    if (
      change.from !== state ||
      !(run.spec.sticky ? STICKY_CHART : CHART).some(
        (edge) => edge.from === change.from && edge.on === change.trigger && edge.to === change.to,
      )
    )
      return bad('chart', `event ${seq}: ${change.from} to ${change.to} by ${change.trigger} is no step from ${state}`);
    state = change.to;
    steps += 1;
    last = change;
  }
  if (state !== run.status) return bad('chart', `the events end in ${state}, the run is ${run.status}`);
  for (const part of ['error', 'result'] as const)
    if (canonicalText(last[part] ?? null) !== canonicalText(run[part]))
      return bad('chart', `the ${part} of the run is not that of its last event`);
  return good(
    'chart',
    `${steps} ${steps === 1 ? 'change' : 'changes'} of state, ${isTerminal(state) ? 'ended' : 'now'} ${state}`,
  );
}

function checkRows({ rows: { problem, questions } }: Evidence): Check {
  return problem === null
    ? good(
        'rows',
        `the request, ${questions} ${questions === 1 ? 'question' : 'questions'}, the session, the counts and the ` +
          'pieces are as the events tell',
      )
    : bad('rows', problem);
}

// Of every turn that has ended: its logs are the bytes that were read.
function checkHashes({ run, rasp, reads, wasTakenOver }: Evidence): Check {
  const begun = new Set(
    rasp
      .filter(({ event }) => event.type === 'lifecycle.process.spawned')
      .map(({ attempt_number: attempt }) => attempt),
  );
  const unread = isTerminal(run.status)
    ? [...begun].filter((attempt) => !reads.some((each) => each.attempt === attempt))
    : [];
  let bytes = 0;
  for (const { attempt, stream, from, bytes: size, sha256, isLast, found } of reads) {
    if (found.problem !== null) return bad('hashes', `attempt ${attempt} ${stream}: ${found.problem}`);
    if (isLast && !wasTakenOver ? found.size !== from + size : found.size < from + size)
      return bad('hashes', `attempt ${attempt} ${stream}: the log has ${found.size} bytes, ${from + size} were read`);
    if (found.sha256 !== sha256) return bad('hashes', `attempt ${attempt} ${stream}: the log was changed`);
    bytes += size;
  }
  return good(
    'hashes',
    `${bytes} bytes of logs unchanged` +
      (unread.length === 0
        ? ''
        : `; of attempt ${unread.join(', ')} nothing was recorded but events: its host was lost, ` +
          'and its logs are not proved'),
  );
}

// Of a turn that runs, not everything is stored yet.
function checkCover({ rasp, reads, wasTakenOver }: Evidence): Check {
  let bytes = 0;
  for (const { attempt, stream, from, isLast, bytes: known, found } of reads) {
    const size = isLast && !wasTakenOver ? found.size - from : known;
    const events = rasp.filter(
      ({ raw_ref: ref }) => ref !== null && ref.byte_from >= from && ref.byte_from < from + Math.max(size, 1),
    );
    const { covered, holes, overlaps } = measureCover(events, stream, attempt, from);
    if (covered !== from + size || holes > 0 || overlaps > 0)
      return bad(
        'cover',
        `attempt ${attempt} ${stream}: events cover ${covered - from} of ${size} bytes, ${holes} holes, ` +
          `${overlaps} overlaps`,
      );
    bytes += size;
  }
  const stray = rasp.find(({ raw_ref: ref }) => ref !== null && isStray(ref, reads));
  if (stray) return bad('cover', `event ${stray.seq} names bytes that its turn has not read`);
  const gap = reads.find(
    ({ stream, from }, index) =>
      from !==
      (reads.slice(0, index).findLast((before) => before.stream === stream && before.log === reads[index]?.log)?.end ??
        0),
  );
  if (gap)
    return bad(
      'cover',
      `attempt ${gap.attempt} ${gap.stream}: what was read does not begin where the turn before has ended`,
    );
  return good('cover', `every one of ${bytes} bytes belongs to an event`);
}

function isStray(ref: NonNullable<RaspEvent['raw_ref']>, reads: readonly Read[]): boolean {
  const own = reads.filter(({ attempt, stream }) => attempt === ref.attempt_number && stream === ref.stream);
  return own.length > 0 && !own.some(({ from, end }) => ref.byte_from >= from && ref.byte_to <= end);
}

interface Read {
  readonly from: number;
  readonly bytes: number;
  readonly sha256: string;
  readonly attempt: number;
  readonly stream: StreamName;
  readonly log: string;
  readonly end: number;
  // Nothing was read from this log afterwards, nor will be.
  readonly isLast: boolean;
}

interface MeasuredRead extends Read {
  // What there is now of the bytes that were read.
  readonly found: Awaited<ReturnType<typeof measureLog>>;
}

// Reads no more than was recorded, however large a log is now.
async function measureReads(reads: readonly Read[]): Promise<MeasuredRead[]> {
  const measured: MeasuredRead[] = [];
  for (const read of reads) measured.push({ ...read, found: await measureLog(read.log, read.from, read.bytes) });
  return measured;
}

// What the turns have read, in order: each from a log of its own, or one after the other from the log of an engine that
// stays.
function readsOf(run: RunRecord, folder: RunFolder, rasp: readonly RaspEvent[]): Read[] {
  const engine = findEngine(run.spec.engine);
  const found = rasp.flatMap(({ event, data, attempt_number: attempt }) => {
    if (event.type !== 'lifecycle.turn.ended' && event.type !== 'lifecycle.process.ended') return [];
    const { streams } = data as unknown as RaspData['lifecycle.process.ended'];
    return STREAMS.map((stream) => ({
      attempt,
      stream,
      facts: streams[stream],
      log: logsOf(engine, folder, attempt)[stream],
    }));
  });
  const goesOn = engine.resident !== undefined && !isTerminal(run.status);
  return found.map(({ facts: { from = 0, bytes, sha256 }, ...read }, index) =>
    Object.assign(read, {
      from,
      bytes,
      sha256,
      end: from + bytes,
      isLast: !goesOn && !found.slice(index + 1).some(({ log }) => log === read.log),
    }),
  );
}

function checkConversation({ run, rasp, fcmpLines }: Evidence): Check {
  const { differsAt } = rebuildConversation(run.run_id, rasp, fcmpLines);
  return differsAt === null
    ? good('conversation', `${fcmpLines.length} events, rebuilt byte for byte`)
    : bad('conversation', `rebuilt from the journal it differs at event ${differsAt}`);
}

function isPlayed({ status }: RunRecord): boolean {
  return status === 'queued' || status === 'running';
}

function journalFiles({ raspLines, fcmpLines }: Evidence): readonly (readonly [string, readonly string[]])[] {
  return [
    ['rasp.jsonl', raspLines],
    ['fcmp.jsonl', fcmpLines],
  ];
}

async function waitUntilLong(path: string, lines: readonly string[], waitForFiles: WaitForFiles): Promise<void> {
  const bytes = bytesOf(lines);
  while (((await fileSize(path)) ?? 0) < bytes && (await waitForFiles()));
}

function bytesOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
}

// Written after each commit: while a run is played they may be behind.
async function checkFiles(evidence: Evidence): Promise<Check> {
  const { run, folder } = evidence;
  if (isPlayed(run)) return good('files', 'not compared while the run is being played');
  for (const [name, lines] of journalFiles(evidence)) {
    const path = join(folder.path, name);
    const found = (await readBytes(path, { maxBytes: bytesOf(lines) }).catch(unlessUnsafe)) ?? Buffer.alloc(0);
    if (found === 'unsafe' || !found.equals(Buffer.from(lines.map((line) => `${line}\n`).join(''))))
      return bad('files', `${name} is not what is stored: a crash cut it off, or somebody changed it`);
  }
  return good('files', 'rasp.jsonl and fcmp.jsonl are what is stored');
}

// Larger than what was written, or not a regular file any more.
function unlessUnsafe(error: unknown): 'unsafe' {
  if (error instanceof UnsafeFileError) return 'unsafe';
  throw error;
}

async function checkResult({ rasp, folder }: Evidence): Promise<Check> {
  const written = rasp.findLast(({ event }) => event.type === 'artifact.result.written')?.data as unknown as
    | RaspData['artifact.result.written']
    | undefined;
  if (!written) return good('result', 'none was written');
  const path = join(folder.path, written.path);
  const found = await readBytes(path, { maxBytes: written.bytes }).catch(unlessUnsafe);
  if (found === null) return bad('result', `${written.path} is gone`);
  const same = found !== 'unsafe' && createHash('sha256').update(found).digest('hex') === written.sha256;
  return same ? good('result', `${written.path} unchanged`) : bad('result', `${written.path} was changed`);
}
