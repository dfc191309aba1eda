// Checks that the logs still hold the bytes that the turns read, and that the events account for each of those bytes.
// Both checks use the same list of reads.
import { findEngine } from '../engines/registry.js';
import type { Engine } from '../engines/engine.js';
import { logsOf } from '../journal/turn-logs.js';
import type { RunFolder } from '../journal/run-folder.js';
import { LogCover, SeenRanges, type Cover } from '../rasp/cover.js';
import type { RaspData, RaspEvent, StreamName } from '../rasp/event.js';
import { isTerminal } from '../run/statechart.js';
import type { RunRecord } from '../store/store.js';
import { failed, passed, type MadeCheck } from './check.js';
import { finding } from './findings.js';
import { measureLog, type MeasuredLog } from './measure-log.js';

const STREAMS = ['stdout', 'stderr'] as const;

// The bytes of one log that one turn read.
interface Read {
  readonly attempt: number;
  readonly stream: StreamName;
  readonly log: string;
  readonly from: number;
  readonly bytes: number;
  readonly sha256: string;
  readonly cover: Cover;
  // Whether it begins where the read of the same log before it ended.
  readonly isAdjacent: boolean;
}

interface Edge {
  readonly at: number;
  readonly seq: number;
}

// The events of one attempt that name bytes of one stream.
interface NamedBytes {
  readonly begin: number;
  readonly cover: LogCover;
  first: Edge;
  last: Edge;
  // The end of the last read; null: no read is recorded yet.
  readTo: number | null;
}

export type OnLogBytes = (checked: number, total: number) => void;

export class LogChecks {
  readonly #engine: Engine;
  readonly #folder: RunFolder;
  readonly #onBytes: OnLogBytes;
  readonly #reads: Read[] = [];
  readonly #measured: MeasuredLog[] = [];
  // The last read of each log, and where it ended.
  readonly #lastReads = new Map<string, number>();
  readonly #ends = new Map<string, number>();
  readonly #named = new Map<string, NamedBytes>();
  readonly #seen = new SeenRanges();
  readonly #spawned = new Set<number>();
  #turns = 0;

  constructor(run: RunRecord, folder: RunFolder, onBytes: OnLogBytes = () => {}) {
    this.#engine = findEngine(run.spec.engine);
    this.#folder = folder;
    this.#onBytes = onBytes;
  }

  event({ event: { type }, data, attempt_number: attempt, raw_ref: ref, seq }: RaspEvent): void {
    if (ref !== null) this.#name(ref, seq);
    if (type === 'lifecycle.state.changed' && data.to === 'running') this.#turns += 1;
    if (type === 'lifecycle.process.spawned') this.#spawned.add(attempt);
    if (type === 'lifecycle.turn.ended' || type === 'lifecycle.process.ended')
      this.#read(attempt, data as unknown as RaspData['lifecycle.process.ended']);
  }

  #name(
    { attempt_number: attempt, stream, byte_from: from, byte_to: to }: NonNullable<RaspEvent['raw_ref']>,
    seq: number,
  ): void {
    const named = this.#namedOf(attempt, stream);
    named.cover.add(from, to);
    if (from < named.first.at) named.first = { at: from, seq };
    if (to > named.last.at) named.last = { at: to, seq };
  }

  #namedOf(attempt: number, stream: StreamName): NamedBytes {
    const key = `${attempt} ${stream}`;
    const known = this.#named.get(key);
    if (known) return known;
    const begin = this.#ends.get(logsOf(this.#engine, this.#folder, attempt)[stream]) ?? 0;
    const named: NamedBytes = {
      begin,
      cover: new LogCover(this.#seen, { log: this.#named.size, begin }),
      first: { at: begin, seq: 0 },
      last: { at: begin, seq: 0 },
      readTo: null,
    };
    this.#named.set(key, named);
    return named;
  }

  // The events of a turn come before the event that records its reads.
  #read(attempt: number, { streams }: RaspData['lifecycle.process.ended']): void {
    for (const stream of STREAMS) {
      const { from = 0, bytes, sha256 } = streams[stream];
      const named = this.#namedOf(attempt, stream);
      const log = logsOf(this.#engine, this.#folder, attempt)[stream];
      const cover = named.cover.finish(from + bytes);
      const isAdjacent = from === (this.#ends.get(log) ?? 0);
      this.#reads.push({ attempt, stream, log, from, bytes, sha256, cover, isAdjacent });
      this.#lastReads.set(log, this.#reads.length - 1);
      this.#ends.set(log, from + bytes);
      named.readTo = from + bytes;
    }
  }

  // Hashes the logs. Call it once, before `finishHashes` and `finishCover`. Reads no more than was recorded, however
  // large a log is now.
  async measure(): Promise<void> {
    const total = this.#reads.reduce((sum, { bytes }) => sum + bytes, 0);
    let checked = 0;
    for (const { log, from, bytes } of this.#reads) {
      const before = checked;
      const onBytes = (count: number): void => this.#onBytes(before + count, total);
      this.#measured.push(await measureLog(log, { from, bytes, onBytes }));
      checked += bytes;
    }
  }

  #measuredOf(index: number): MeasuredLog {
    return this.#measured[index] ?? { size: 0, sha256: '', problem: finding('hashes.not_measured') };
  }

  // Whether the log must end with this read. A resident engine may print more until its run has ended, and a host that
  // lost its run may have printed more than its successor read.
  #isWhole(index: number, run: RunRecord): boolean {
    const isLast = this.#lastReads.get(this.#reads[index]?.log ?? '') === index;
    const continues = this.#engine.resident !== undefined && !isTerminal(run.status);
    // Each turn has an epoch of its own; only a take-over adds one more.
    const wasTakenOver = run.epoch > this.#turns;
    return isLast && !continues && !wasTakenOver;
  }

  finishHashes(run: RunRecord): MadeCheck {
    let total = 0;
    for (const [index, { attempt, stream, from, bytes, sha256 }] of this.#reads.entries()) {
      const { size, sha256: actual, problem } = this.#measuredOf(index);
      const end = from + bytes;
      if (problem !== null) return failed('hashes', finding('hashes.unreadable', { turn: attempt, stream, problem }));
      if (this.#isWhole(index, run) ? size !== end : size < end)
        return failed('hashes', finding('hashes.size', { turn: attempt, stream, size, read: end }));
      if (actual !== sha256) return failed('hashes', finding('hashes.altered', { turn: attempt, stream }));
      total += bytes;
    }
    const turns = this.#listLost(run);
    const checked = finding('hashes.passed', { bytes: total });
    if (turns.length === 0) return passed('hashes', checked);
    return passed(
      'hashes',
      finding('hashes.passed_lost', { passed: checked, lost: finding('hashes.lost', { turns }) }),
    );
  }

  // The turns whose host was lost before the hashes of their logs were recorded.
  #listLost({ status }: RunRecord): number[] {
    const read = new Set(this.#reads.map(({ attempt }) => attempt));
    return isTerminal(status) ? [...this.#spawned].filter((attempt) => !read.has(attempt)) : [];
  }

  finishCover(run: RunRecord): MadeCheck {
    let total = 0;
    for (const [index, { attempt, stream, from, bytes, cover }] of this.#reads.entries()) {
      const size = this.#isWhole(index, run) ? this.#measuredOf(index).size - from : bytes;
      const { covered, holes, overlaps } = cover;
      if (covered !== from + size || holes > 0 || overlaps > 0)
        return failed(
          'cover',
          finding('cover.holes', { turn: attempt, stream, covered: covered - from, size, holes, overlaps }),
        );
      total += size;
    }
    const stray = this.#findStray();
    if (stray !== null) return failed('cover', finding('cover.stray', { event: stray }));
    const gap = this.#reads.find(({ isAdjacent }) => !isAdjacent);
    return gap
      ? failed('cover', finding('cover.gap', { turn: gap.attempt, stream: gap.stream }))
      : passed('cover', finding('cover.passed', { bytes: total }));
  }

  // The seq of an event that refers to bytes outside the reads of its attempt. Attempts without reads are not checked.
  #findStray(): number | null {
    for (const { begin, first, last, readTo } of this.#named.values()) {
      if (readTo === null) continue;
      if (first.at < begin) return first.seq;
      if (last.at > readTo) return last.seq;
    }
    return null;
  }
}
