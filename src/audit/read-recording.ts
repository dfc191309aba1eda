// One recorded turn as a whole run: created, started, what the engine printed, judged. The same parser, stamp, fold and
// judgement as a live turn; only the process and the store are missing.
import { createHash, type Hash } from 'node:crypto';
import type { Clock } from '../kernel/clock.js';
import type { Ids } from '../kernel/ids.js';
import { invariant } from '../kernel/invariant.js';
import type { Engine } from '../engines/engine.js';
import { createTurnParser } from '../engines/registry.js';
import type { TurnParser } from '../engines/turn-parser.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import type { StreamName } from '../rasp/event.js';
import { DEFAULT_MAX_ATTEMPT, FIRST_ATTEMPT, type ExecutionMode } from '../run/attempt.js';
import type { Exit } from '../run/judge-completion.js';
import { NO_FACTS } from '../run/guards.js';
import { INITIAL_STATE } from '../run/statechart.js';
import { concludeTurn, type TurnConclusion } from '../turn/conclude-turn.js';
import { EMPTY_JOURNAL } from '../store/store.js';
import { summariseParser } from '../turn/parser-summary.js';
import { RunJournal } from '../journal/run-journal.js';
import { takeEdge } from '../journal/take-edge.js';

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
  // Whole lines, as they would be stored.
  readonly rasp: (lines: Buffer) => void;
  readonly fcmp: (lines: Buffer) => void;
}

export class RecordingReader {
  readonly #options: RecordingOptions;
  readonly #output: RecordingOutput;
  readonly #parser: TurnParser;
  readonly #journal: RunJournal;
  readonly #hashes: Record<StreamName, Hash> = { stdout: createHash('sha256'), stderr: createHash('sha256') };
  readonly #bytes: Record<StreamName, number> = { stdout: 0, stderr: 0 };

  constructor(options: RecordingOptions, output: RecordingOutput) {
    this.#options = options;
    this.#output = output;
    this.#parser = createTurnParser(options.engine);
    this.#journal = new RunJournal(
      { runId: options.ids.run(), engine: options.engine.name, attempt: FIRST_ATTEMPT },
      EMPTY_JOURNAL,
      options.clock,
    );
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
      now: options.clock.now(),
      interactionId: options.ids.interaction(),
      streams: { stdout: this.#facts('stdout'), stderr: this.#facts('stderr') },
      parser: summariseParser(this.#parser.counts()),
    });
    this.#write(conclusion.drafts);
    return conclusion;
  }

  #begin(): void {
    const { engine, mode, prompt, resumedFrom } = this.#options;
    const started = takeEdge(
      INITIAL_STATE,
      'turn.started',
      { ...NO_FACTS, handle: resumedFrom !== null },
      { now: this.#options.clock.now() },
    );
    invariant(started.legal, 'a queued run can start');
    this.#write([
      draft('lifecycle.run.created', { engine: engine.name, execution_mode: mode, prompt }),
      started.changed,
      draft('lifecycle.turn.started', { argv: [], resumed: resumedFrom !== null }),
    ]);
  }

  #write(drafts: readonly RaspDraft[]): void {
    this.#journal.add(drafts);
    const flush = this.#journal.take();
    if (flush) this.#output.rasp(flush.rasp.bytes);
    if (flush?.fcmp) this.#output.fcmp(flush.fcmp.bytes);
  }

  #facts(stream: StreamName): { bytes: number; sha256: string } {
    return { bytes: this.#bytes[stream], sha256: this.#hashes[stream].digest('hex') };
  }
}
