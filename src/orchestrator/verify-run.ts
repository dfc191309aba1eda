// Checks everything about a stored run that can be checked: digest, order, form, hashes and cover of the logs, the walk over
// the chart, the conversation rebuilt, the files beside. It reads only, and it tells of all it finds.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectConversation } from '../fcmp/fold.js';
import { canonicalText, parseJson } from '../kernel/json.js';
import { measureCover } from '../rasp/cover.js';
import type { RaspData, RaspEvent } from '../rasp/event.js';
import { explainRasp } from '../rasp/validate.js';
import { CHART, INITIAL_STATE } from '../run/statechart.js';
import type { RunRecord, Store } from '../store/store.js';
import { runFolder, type RunFolder } from './run-folder.js';

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
}

const STREAMS = ['stdout', 'stderr'] as const;
const ALL = { limit: Number.MAX_SAFE_INTEGER };

// Of a run that is being played it checks what was stored at one moment.
export async function verifyRun(store: Store, dataDir: string, run: RunRecord): Promise<Check[]> {
  for (let seen = run; ; ) {
    const checks = await verifySeen(store, dataDir, seen);
    const now = await store.loadRun(run.run_id);
    if (!now || now.heads.rasp_seq === seen.heads.rasp_seq) return checks;
    seen = now;
  }
}

async function verifySeen(store: Store, dataDir: string, run: RunRecord): Promise<Check[]> {
  const raspLines = await store.readJournal(run.run_id, 'rasp', ALL);
  const parsed = raspLines.map((line) => parseJson(line) as unknown as RaspEvent | undefined);
  const rasp = parsed.filter((event) => event !== undefined);
  const unreadable = parsed.findIndex((event) => event === undefined);
  if (unreadable >= 0) return [bad('journal', `event ${unreadable + 1} is not JSON`)];
  const evidence: Evidence = { run, folder: runFolder(dataDir, run.run_id), rasp, raspLines, fcmpLines: await store.readJournal(run.run_id, 'fcmp', ALL), digest: await store.recomputeDigest(run.run_id) };
  return [checkDigest, checkOrder, checkForm, checkChart, checkHashes, checkCover, checkConversation, checkFiles, checkResult].map((check) => check(evidence));
}

// The conversation as the journal gives it, and where the stored one differs: its seq, or null.
export function rebuildConversation(runId: string, rasp: readonly RaspEvent[], stored: readonly string[]): { readonly lines: readonly string[]; readonly differsAt: number | null } {
  const lines = projectConversation(runId, rasp);
  const length = Math.max(lines.length, stored.length);
  for (let index = 0; index < length; index += 1) if (lines[index] !== stored[index]) return { lines, differsAt: index + 1 };
  return { lines, differsAt: null };
}

function good(name: string, finding: string): Check {
  return { name, ok: true, finding };
}

function bad(name: string, finding: string): Check {
  return { name, ok: false, finding };
}

function checkDigest({ run, digest }: Evidence): Check {
  return digest === run.heads.digest ? good('digest', digest) : bad('digest', `the stored events give ${digest}, the run says ${run.heads.digest}`);
}

function checkOrder({ run, rasp, fcmpLines }: Evidence): Check {
  const gap = rasp.findIndex((event, index) => event.seq !== index + 1 || event.run_id !== run.run_id);
  if (gap >= 0) return bad('order', `after event ${gap} comes another than ${gap + 1}`);
  const back = rasp.findIndex((event, index) => index > 0 && event.ts < (rasp[index - 1]?.ts ?? ''));
  if (back >= 0) return bad('order', `the time of event ${back + 1} is before that of the one before`);
  if (rasp.length !== run.heads.rasp_seq || fcmpLines.length !== run.heads.fcmp_seq) return bad('order', `${rasp.length} and ${fcmpLines.length} events are stored, the run says ${run.heads.rasp_seq} and ${run.heads.fcmp_seq}`);
  return good('order', `${rasp.length} events without a gap`);
}

function checkForm({ rasp }: Evidence): Check {
  for (const event of rasp) {
    const problem = explainRasp(event);
    if (problem !== null) return bad('form', `event ${event.seq}: ${problem}`);
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
    if (change.from !== state || !CHART.some((edge) => edge.from === change.from && edge.on === change.trigger && edge.to === change.to)) return bad('chart', `event ${seq}: ${change.from} to ${change.to} by ${change.trigger} is no step from ${state}`);
    state = change.to;
    steps += 1;
    last = change;
  }
  if (state !== run.status) return bad('chart', `the events end in ${state}, the run is ${run.status}`);
  for (const part of ['error', 'result'] as const) if (canonicalText(last[part] ?? null) !== canonicalText(run[part])) return bad('chart', `the ${part} of the run is not that of its last event`);
  return good('chart', `${steps} changes of state, ends ${state}`);
}

// Of every turn that has ended: its logs are the bytes that were read.
function checkHashes({ rasp, folder }: Evidence): Check {
  let bytes = 0;
  for (const { event, data, attempt_number: attempt } of rasp) {
    if (event.type !== 'lifecycle.turn.ended') continue;
    const { streams } = data as unknown as RaspData['lifecycle.turn.ended'];
    for (const stream of STREAMS) {
      const log = readLog(folder, attempt, stream);
      const { bytes: size, sha256 } = streams[stream];
      if (log.length !== size) return bad('hashes', `attempt ${attempt} ${stream}: the log has ${log.length} bytes, ${size} were read`);
      if (createHash('sha256').update(log).digest('hex') !== sha256) return bad('hashes', `attempt ${attempt} ${stream}: the log was changed`);
      bytes += size;
    }
  }
  return good('hashes', `${bytes} bytes of logs unchanged`);
}

function checkCover({ run, rasp, folder }: Evidence): Check {
  let bytes = 0;
  const ended = new Set(rasp.filter(({ event }) => event.type === 'lifecycle.turn.ended').map(({ attempt_number: attempt }) => attempt));
  for (let attempt = 1; attempt <= run.attempt_number; attempt += 1) {
    // Of a turn that runs, not everything is stored yet.
    if (!ended.has(attempt)) continue;
    for (const stream of STREAMS) {
      const size = readLog(folder, attempt, stream).length;
      const { covered, holes, overlaps } = measureCover(rasp, stream, attempt);
      if (covered !== size || holes > 0 || overlaps > 0) return bad('cover', `attempt ${attempt} ${stream}: events cover ${covered} of ${size} bytes, ${holes} holes, ${overlaps} overlaps`);
      bytes += size;
    }
  }
  return good('cover', `every one of ${bytes} bytes belongs to an event`);
}

function checkConversation({ run, rasp, fcmpLines }: Evidence): Check {
  const { differsAt } = rebuildConversation(run.run_id, rasp, fcmpLines);
  return differsAt === null ? good('conversation', `${fcmpLines.length} events, rebuilt byte for byte`) : bad('conversation', `rebuilt from the journal it differs at event ${differsAt}`);
}

// Written after each commit: while a run is played they may be behind.
function checkFiles({ run, folder, raspLines, fcmpLines }: Evidence): Check {
  if (run.status === 'queued' || run.status === 'running') return good('files', 'not compared while the run is being played');
  for (const [name, lines] of [['rasp.jsonl', raspLines], ['fcmp.jsonl', fcmpLines]] as const) {
    const path = join(folder.path, name);
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    if (text !== lines.map((line) => `${line}\n`).join('')) return bad('files', `${name} is not what is stored: a crash cut it off, or somebody changed it`);
  }
  return good('files', 'rasp.jsonl and fcmp.jsonl are what is stored');
}

function checkResult({ rasp, folder }: Evidence): Check {
  const written = rasp.findLast(({ event }) => event.type === 'artifact.result.written')?.data as unknown as RaspData['artifact.result.written'] | undefined;
  if (!written) return good('result', 'none was written');
  const path = join(folder.path, written.path);
  if (!existsSync(path)) return bad('result', `${written.path} is gone`);
  const same = createHash('sha256').update(readFileSync(path)).digest('hex') === written.sha256;
  return same ? good('result', `${written.path} unchanged`) : bad('result', `${written.path} was changed`);
}

function readLog(folder: RunFolder, attempt: number, stream: (typeof STREAMS)[number]): Buffer {
  const path = folder.attempt(attempt).logs[stream];
  return existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
}
