// One recorded turn as a whole run: created, started, what the engine printed, judged. The same parser, stamp, fold and
// judgement as a live turn; only the process and the store are missing.
import { createHash, type Hash } from 'node:crypto';
import { toTimestamp, type Clock } from '../kernel/clock.js';
import type { Ids } from '../kernel/ids.js';
import { invariant } from '../kernel/invariant.js';
import type { Engine } from '../engines/engine.js';
import { createTurnParser } from '../engines/registry.js';
import type { TurnParser } from '../engines/turn-parser.js';
import { ConversationFold, foldInputOfDraft } from '../fcmp/fold.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import type { StreamName } from '../rasp/event.js';
import { createStamp, type Stamp } from '../rasp/stamp.js';
import { DEFAULT_MAX_ATTEMPT, FIRST_ATTEMPT, type ExecutionMode } from '../run/attempt.js';
import type { Exit } from '../run/judge-completion.js';
import { INITIAL_STATE } from '../run/statechart.js';
import { concludeTurn, type TurnConclusion } from './conclude-turn.js';
import { EventBuffer } from './event-buffer.js';
import { summariseParser } from './parser-summary.js';
import { takeEdge } from './take-edge.js';

export interface RecordingOptions {
  readonly engine: Engine;
  readonly mode: ExecutionMode;
  readonly prompt: string;
  // The session id the turn was to continue, if it was a resumed one.
  readonly resumedFrom: string | null;
  readonly clock: Clock;
  readonly ids: Ids;
}

export interface RecordingOutput {
  // Whole lines of RASP, as bytes that are valid only during the call.
  readonly rasp: (lines: Buffer) => void;
  readonly fcmp: (line: string) => void;
}

export class RecordingReader {
  readonly #options: RecordingOptions;
  readonly #output: RecordingOutput;
  readonly #parser: TurnParser;
  readonly #stamp: Stamp;
  readonly #buffer = new EventBuffer();
  readonly #fold: ConversationFold;
  readonly #hashes: Record<StreamName, Hash> = { stdout: createHash('sha256'), stderr: createHash('sha256') };
  readonly #bytes: Record<StreamName, number> = { stdout: 0, stderr: 0 };
  #seq = 0;
  #now: number;

  constructor(options: RecordingOptions, output: RecordingOutput) {
    this.#options = options;
    this.#output = output;
    this.#now = options.clock.now();
    const runId = options.ids.run();
    this.#parser = createTurnParser(options.engine);
    this.#stamp = createStamp({ runId, engine: options.engine.name, attempt: FIRST_ATTEMPT });
    this.#fold = new ConversationFold(runId);
    this.#begin();
  }

  push(stream: StreamName, chunk: Buffer): void {
    this.#hashes[stream].update(chunk);
    this.#bytes[stream] += chunk.length;
    this.#write(this.#parser.push(stream, chunk));
  }

  finish(exit: Exit): TurnConclusion {
    const options = this.#options;
    this.#write(this.#parser.finish());
    const evidence = this.#parser.evidence();
    const conclusion = concludeTurn({
      facts: {
        mode: options.mode,
        attempt: FIRST_ATTEMPT,
        maxAttempt: DEFAULT_MAX_ATTEMPT,
        evidence,
        exit,
        endedByUs: null,
        resumedFrom: options.resumedFrom,
        // A recording has no home to look into: an id that was read counts.
        handleChecked: evidence.sessionId !== null,
        output: { kind: 'not_asked' },
      },
      now: this.#tick(),
      interactionId: options.ids.interaction(),
      streams: { stdout: this.#facts('stdout'), stderr: this.#facts('stderr') },
      parser: summariseParser(this.#parser.counts()),
    });
    this.#write(conclusion.drafts);
    return conclusion;
  }

  #begin(): void {
    const { engine, mode, prompt, resumedFrom } = this.#options;
    const started = takeEdge(INITIAL_STATE, 'turn.started', { pending: false, handle: resumedFrom !== null, requireUserReply: true, sticky: false }, { now: this.#now });
    invariant(started.legal, 'a queued run can start');
    this.#write([
      draft('lifecycle.run.created', { engine: engine.name, execution_mode: mode, prompt }),
      started.changed,
      draft('lifecycle.turn.started', { argv: [], resumed: resumedFrom !== null }),
    ]);
  }

  #write(drafts: readonly RaspDraft[]): void {
    const ts = toTimestamp(this.#tick());
    for (const each of drafts) {
      this.#seq += 1;
      this.#stamp(each, this.#seq, ts, this.#buffer);
      for (const line of this.#fold.push(foldInputOfDraft(each, this.#seq, ts, FIRST_ATTEMPT))) this.#output.fcmp(line);
    }
    if (drafts.length > 0) this.#output.rasp(this.#buffer.take());
  }

  // The clock may jump back; the times of a run never do.
  #tick(): number {
    this.#now = Math.max(this.#now, this.#options.clock.now());
    return this.#now;
  }

  #facts(stream: StreamName): { bytes: number; sha256: string } {
    return { bytes: this.#bytes[stream], sha256: this.#hashes[stream].digest('hex') };
  }
}
