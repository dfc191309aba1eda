// Reads one recorded turn as a whole run: creation, start, engine output, judgement. It uses the same parser, stamp,
// fold and judgement as a live turn, without a process and without a store.
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
import { NO_FACTS, type GuardFacts } from '../run/guards.js';
import { startFold } from '../run/run-fold.js';
import { INITIAL_STATE, type RunEvent, type RunState } from '../run/statechart.js';
import { concludeTurn, type TurnConclusion } from '../turn/conclude-turn.js';
import { EMPTY_JOURNAL } from '../store/store.js';
import { summariseParser } from '../turn/parser-summary.js';
import { RunJournal } from '../journal/run-journal.js';
import { takeEdge, type EdgeDetails } from '../journal/take-edge.js';

export interface RecordingOptions {
  readonly engine: Engine;
  readonly mode: ExecutionMode;
  readonly prompt: string;
  // The session id that a resumed turn continued, or null.
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
      { heads: EMPTY_JOURNAL, state: startFold(null) },
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
        // A recording has no home to check, so an id in the output is accepted.
        handleChecked: evidence.sessionId !== null,
        output: { kind: 'not_asked' },
      },
      now: options.clock.now(),
      interactionId: options.ids.interaction(),
      streams: { stdout: this.#facts('stdout'), stderr: this.#facts('stderr') },
      parser: summariseParser(this.#parser.counts()),
    });
    const { event, facts, before, ...details } = conclusion.transition;
    this.#write(before);
    this.#takeEdge('running', event, { facts, details });
    return conclusion;
  }

  #begin(): void {
    const { engine, mode, prompt, resumedFrom } = this.#options;
    this.#write([draft('lifecycle.run.created', { engine: engine.name, execution_mode: mode, prompt })]);
    this.#takeEdge(INITIAL_STATE, 'turn.started', { facts: { ...NO_FACTS, handle: resumedFrom !== null } });
    this.#write([draft('lifecycle.turn.started', { argv: [], resumed: resumedFrom !== null })]);
  }

  #takeEdge(
    from: RunState,
    event: RunEvent,
    { facts, details = {} }: { readonly facts: GuardFacts; readonly details?: Omit<EdgeDetails, 'now'> },
  ): void {
    const taken = takeEdge(from, event, facts, { ...details, now: this.#options.clock.now() });
    invariant(taken.legal, `a ${from} run takes ${event}`);
    this.#write([taken.changed]);
  }

  #write(drafts: readonly RaspDraft[]): void {
    this.#journal.add(drafts);
    const lines = this.#journal.drain()?.lines;
    if (lines) this.#output.rasp(lines.rasp.bytes);
    if (lines?.fcmp) this.#output.fcmp(lines.fcmp.bytes);
  }

  #facts(stream: StreamName): { bytes: number; sha256: string } {
    return { bytes: this.#bytes[stream], sha256: this.#hashes[stream].digest('hex') };
  }
}
