// Runs a turn of a resident engine: gives the answer to the process that waits for it, or starts a process that
// continues the session; then reads its output until the turn is over or it asks for a person.
import { createHash } from 'node:crypto';
import type { EngineCommand } from '../../engines/engine.js';
import type { NativeRequest } from '../../engines/native-request.js';
import { createTurnParser } from '../../engines/registry.js';
import type { Conversation, Resident, ResidentRules } from '../../engines/resident.js';
import { newMemory, type ReaderMemory, type TurnParser } from '../../engines/turn-parser.js';
import { classifyFailure } from '../../engines/auth-failure.js';
import type { ReceivedLine } from '../../jsonrpc/received-line.js';
import { invariant } from '../../kernel/invariant.js';
import { asObject, asString } from '../../kernel/json.js';
import type { EndReason } from '../../process/child.js';
import { draft, type RaspDraft } from '../../rasp/draft.js';
import type { TurnEvidence } from '../../run/evidence.js';
import type { Exit } from '../../run/judge-completion.js';
import { TurnRefusedError } from '../../run/turn-refused-error.js';
import { buildFirstPrompt, buildReplyPrompt } from '../../run/turn-prompt.js';
import { waitPolicyOf } from '../../run/waiting/wait-policy.js';
import type { Resolution, RunRecord } from '../../store/store.js';
import { Decisions } from './decisions.js';
import { summariseParser } from '../parser-summary.js';
import { writeCommand } from '../process-turn.js';
import { prepareTurn } from '../prepare-turn.js';
import type { Residents, Waiter } from './residents.js';
import { runFolder } from '../../journal/run-folder.js';
import { logsOf, readEnds, readLog, slice, syncLog, type LogEnds, type LogPaths } from '../../journal/turn-logs.js';
import { PROCESS_LOST } from './lost-process.js';
import { TurnClocks } from './turn-clocks.js';
import {
  checkLease,
  failTurn,
  failStart,
  commitTurn,
  stopElsewhere,
  judgeTurn,
  whileHeld,
  type TurnOutput,
  type TurnContext,
} from '../turn-context.js';
import { reasonOf } from '../../kernel/system-error.js';

export interface ResidentTurnInput {
  readonly command: EngineCommand;
  readonly program: readonly string[];
  // The process that was kept for the answer; null if there is none.
  readonly waiter: Waiter | null;
  readonly residents: Residents;
}

const UNKNOWN_EXIT: Exit = { code: null, signal: null };

export async function runResidentTurn(context: TurnContext, input: ResidentTurnInput): Promise<RunRecord> {
  const turn = new ResidentTurn(
    context,
    input,
    await whileHeld(context.deps, () => readEnds(context.deps.store, context.writer.run)),
  );
  try {
    return await turn.run();
  } catch (error) {
    // No other code reads its output after this.
    await turn.abandon();
    throw error;
  }
}

// One turn (one attempt of a run) with a resident engine. Its states:
//
//   starting   `#dropUselessWaiter`, `#start`. A process that waited for the answer of this turn (`input.waiter`) is
//              used if it still waits; otherwise it is closed and a new process continues the session. Ends with a
//              resident, or with a run that fails before anything was sent.
//   speaking   `#speak`. Sends the answer to the open request, or a prompt that begins a turn of the engine. Output
//              that arrives meanwhile waits in the feed of the resident.
//   listening  `#listen`. Handles each line: events are written, requests of the engine are refused, answered by a
//              decision that was made before, or passed to a person. The engine is not read faster than the events are
//              stored. Ends for one of four reasons:
//                over   the engine reported the end of its turn
//                asked  a person must answer a request; the engine's own turn continues in the next attempt
//                gone   the process exited, which ends the lines
//                ended  by us: cancel, a deadline, shutdown, another session (`#endBy` aborts `#stop`)
//   concluding `#conclude`. If the run will wait for a person, the process is handed to `residents` first, so that
//              a reply or a cancel that follows the commit finds it; it keeps running, and later output belongs to the
//              next attempt. In every other case the process is closed and its output is read to the end. Then the
//              logs are synced and the outcome is committed.
//
// Two facts decide what the outcome means. `#isOver`: the turn had ended, or a person was asked, while the process was
// alive, so its exit code does not matter. `#stays`: the process was handed over, so `#endBy` comes too late for this
// turn and leaves the process alone. An error between the states ends in `abandon`, which closes the process.
//
// The state of a request is in its message (see request-ledger.ts), which the resident and the parser share.
class ResidentTurn {
  readonly #context: TurnContext;
  readonly #rules: ResidentRules;
  readonly #input: ResidentTurnInput;
  readonly #begin: LogEnds;
  // The session ends with the process.
  readonly #isNeeded: boolean;
  readonly #logs: LogPaths;
  readonly #memory: ReaderMemory;
  readonly #parser: TurnParser;
  readonly #clocks: TurnClocks;
  readonly #stop = new AbortController();
  readonly #hash = createHash('sha256');
  #at: number;
  #resident: Resident | null;
  #endedByUs: EndReason | null = null;
  // The first error of ours: the process could not be started, or an answer or prompt could not be sent.
  #trouble: string | null = null;
  #isOver = false;
  #stays = false;
  readonly #stderrHash = createHash('sha256');
  #stderrBytes = 0;
  readonly #decisions: Decisions;

  constructor(context: TurnContext, input: ResidentTurnInput, begin: LogEnds) {
    const { run } = context.writer;
    invariant(context.engine.resident, 'the engine is resident');
    this.#rules = context.engine.resident;
    this.#context = context;
    this.#input = input;
    this.#begin = begin;
    this.#isNeeded = waitPolicyOf(run.spec).needsProcess;
    this.#at = begin.stdout;
    this.#logs = logsOf(context.engine, runFolder(context.deps.dataDir, run.run_id), run.attempt_number);
    this.#memory = input.waiter?.memory ?? newMemory(context.handle?.handle_value ?? null);
    this.#parser = createTurnParser(context.engine, context.version, { at: begin, memory: this.#memory });
    this.#clocks = new TurnClocks(context);
    this.#decisions = new Decisions(context);
    this.#resident = input.waiter?.resident ?? null;
  }

  async abandon(): Promise<void> {
    this.#clocks.stop();
    await this.#resident?.close();
  }

  async run(): Promise<RunRecord> {
    await this.#dropUselessWaiter();
    // The session existed only in that process.
    if (this.#resident === null && this.#isNeeded && this.#context.handle !== null) {
      await this.#context.writer.close();
      return failTurn(this.#context, PROCESS_LOST);
    }
    // The process that asked has exited, so there is nothing to cancel in it.
    if (this.#resident === null && this.#decisions.given === 'cancel') {
      this.#decisions.stop();
      return this.#conclude(null, UNKNOWN_EXIT);
    }
    this.#clocks.start(this.#parser, (reason) => this.#endBy(reason));
    this.#context.control.attach({ end: (reason) => this.#endBy(reason) });
    checkLease(this.#context);
    const refused = this.#resident === null ? await this.#start() : null;
    const resident = this.#resident;
    if (refused || resident === null) {
      this.#clocks.stop();
      return refused ?? this.#conclude(null, UNKNOWN_EXIT);
    }
    checkLease(this.#context);
    await this.#speak(resident).catch((error: unknown) => this.#note(error));
    const asked = this.#trouble === null ? await this.#listen(resident) : null;
    this.#clocks.stop();
    this.#isOver = asked !== null || this.#parser.turnOver;
    if (this.#isOver && (await this.#wouldWait(asked)) && this.#endedByUs === null) {
      // Before the commit: a reply or a cancel after it finds the process.
      this.#stays = true;
      await whileHeld(this.#context.deps, () => this.#context.deps.peers.hold(this.#context.writer.run.run_id));
      this.#input.residents.keep(this.#context.writer.run.run_id, {
        resident,
        memory: this.#memory,
        request: asked,
        isNeeded: this.#isNeeded,
      });
      return this.#conclude(asked, null);
    }
    const { exit, error } = await resident.close();
    if (error) this.#note(error);
    return this.#conclude(asked, exit);
  }

  // Closes a process that no longer waits for this answer; another one continues the session.
  async #dropUselessWaiter(): Promise<void> {
    const { waiter } = this.#input;
    if (!waiter || (waiter.resident.isAlive && (waiter.request === null || waiter.resident.waitsFor(waiter.request))))
      return;
    await waiter.resident.close();
    this.#resident = null;
  }

  async #wouldWait(asked: NativeRequest | null): Promise<boolean> {
    const { transition } = await judgeTurn(this.#context, this.#output(asked, UNKNOWN_EXIT));
    return transition.event === 'turn.needs_input';
  }

  // Without an exit the process keeps running. With one, its output is read to the end first. Either way the logs are
  // on the disk before the new state is stored.
  async #conclude(asked: NativeRequest | null, exit: Exit | null): Promise<RunRecord> {
    const { writer } = this.#context;
    if (exit) await this.#readRest();
    const { bytes } = await readLog(this.#logs.stderr, this.#begin.stderr, (chunk) => {
      this.#stderrHash.update(chunk);
      return writer.add(this.#parser.push('stderr', chunk));
    });
    this.#stderrBytes = bytes;
    void writer.add(this.#parser.finish());
    await Promise.all([writer.close(), ...Object.values(this.#logs).map(syncLog)]);
    return commitTurn(this.#context, await judgeTurn(this.#context, this.#output(asked, exit ?? UNKNOWN_EXIT)));
  }

  // The output of a process that failed to start properly is only in its log.
  async #readRest(): Promise<void> {
    const resident = this.#resident;
    if (resident === null)
      await readLog(this.#logs.stdout, this.#at, (bytes) => this.#record(bytes, this.#parser.push('stdout', bytes)));
    else for await (const line of resident.lines(this.#at)) await this.#handleLine(line);
  }

  // Returns the failed run if the engine must not be started.
  async #start(): Promise<RunRecord | null> {
    const { deps, engine, writer } = this.#context;
    const { run } = writer;
    const prepared = await prepareTurn(this.#context, null);
    if ('refused' in prepared) return failStart(this.#context, prepared.refused);
    writeCommand(prepared.attempt.path, this.#input.command, prepared.env);
    invariant(
      deps.runtime.startResident && run.spec.home !== null,
      'the runtime can start a resident engine, and the run has its own home',
    );
    try {
      this.#resident = await deps.runtime.startResident(engine, {
        program: this.#input.program,
        folder: runFolder(deps.dataDir, run.run_id).path,
        home: run.spec.home,
        cwd: run.spec.cwd,
        env: prepared.env,
        mark: `${run.run_id}/${run.attempt_number}`,
        ...(deps.ownership.hasPeers ? { passesOver: `${run.run_id}/` } : {}),
        signal: this.#stop.signal,
      });
      void writer.add([
        draft('lifecycle.process.spawned', { pid: this.#resident.pid, start_time: this.#resident.startTime }),
      ]);
    } catch (error) {
      if (error instanceof TurnRefusedError) return failStart(this.#context, error.error);
      this.#note(error);
    }
    return null;
  }

  // Sends the answer that the process waits for, or begins a turn of the engine.
  async #speak(resident: Resident): Promise<void> {
    const { answered } = this.#context;
    const { waiter } = this.#input;
    const request = waiter?.resident === resident ? waiter.request : null;
    const resolution = answered?.resolution;
    if (request && resolution) return this.#answerWaiting(resident, request, resolution);
    this.#decisions.store();
    await resident.converse(this.#conversation(), this.#prompt());
  }

  async #answerWaiting(resident: Resident, request: NativeRequest, resolution: Resolution): Promise<void> {
    invariant(request.question, 'a person was asked');
    // Before the decision is stored: it throws for an invalid one.
    const result = this.#rules.buildAnswer(request, resolution.response);
    if (request.question.kind === 'approval') await this.#decisions.apply(request.question, resolution);
    resident.answer(request, result);
    if (this.#decisions.stopped && !this.#rules.stopsByAnswer(request)) return resident.interrupt();
    const note = asString(asObject(resolution.response)?.note);
    if (note !== undefined && request.question.kind === 'approval' && !this.#decisions.stopped)
      await this.#tellNote(resident, note);
  }

  // The decision itself was sent, so a note that arrives too late is only reported.
  async #tellNote(resident: Resident, note: string): Promise<void> {
    await resident.tell(note).catch((error: unknown) =>
      this.#context.writer.add([
        draft('diagnostic.engine.warning', {
          message: `the note could not be given to the agent: ${reasonOf(error)}`,
        }),
      ]),
    );
  }

  // Returns the request that a person must answer; null if the turn is over or the process has exited.
  async #listen(resident: Resident): Promise<NativeRequest | null> {
    for await (const line of resident.lines(this.#at, this.#stop.signal)) {
      this.#clocks.silence.hold();
      try {
        await this.#handleLine(line);
        // Output of an earlier process.
        if (this.#at <= resident.from) continue;
        if (this.#parser.turnOver) return null;
        // The turn is being stopped, and its other requests end with it.
        if (this.#decisions.stopped) continue;
        for (const request of this.#parser.openRequests)
          if (resident.waitsFor(request) && (await this.#isForPerson(resident, request))) return request;
      } finally {
        this.#clocks.silence.release();
      }
    }
    return null;
  }

  #handleLine(line: ReceivedLine): void | Promise<void> {
    return this.#record(line.bytes, this.#parser.pushLine(line));
  }

  // The promise is pending while the store is behind.
  #record(bytes: Buffer, drafts: readonly RaspDraft[]): void | Promise<void> {
    this.#hash.update(bytes);
    this.#at += bytes.length;
    const stored = this.#context.writer.add(drafts);
    stopElsewhere(this.#context, this.#parser);
    return stored;
  }

  // Refuses a request that no person can be asked, applies a decision that was made before; the rest is for a person.
  async #isForPerson(resident: Resident, request: NativeRequest): Promise<boolean> {
    if (request.question === null) {
      resident.refuse(request, request.refusal ?? `${request.message.method} is not handled`);
      return false;
    }
    const decided = await this.#decisions.consume(request.question);
    if (decided === null) return true;
    resident.answer(request, this.#rules.buildAnswer(request, decided.response));
    return false;
  }

  #conversation(): Conversation {
    const { spec } = this.#context.writer.run;
    const { handle } = this.#context;
    if (handle === null && spec.fork_from)
      return {
        session: spec.fork_from.session,
        copies: true,
        cwd: spec.cwd,
        permission: spec.permission,
        mode: spec.execution_mode,
        model: spec.model,
      };
    return {
      session: handle?.handle_value ?? null,
      cwd: spec.cwd,
      permission: spec.permission,
      mode: spec.execution_mode,
      model: spec.model,
    };
  }

  #prompt(): string {
    const { answered, writer } = this.#context;
    const { spec } = writer.run;
    const resolution = answered?.resolution;
    if (!resolution) return buildFirstPrompt(spec.execution_mode, spec.prompt, true);
    // The process that asked in the middle of its turn has exited.
    if (answered.question.channel === 'native')
      return this.#rules.describeAnswer(answered.question, resolution.response);
    return buildReplyPrompt(resolution.response);
  }

  #output(asked: NativeRequest | null, exit: Exit): TurnOutput {
    const streams = {
      stdout: slice(this.#begin.stdout, this.#at - this.#begin.stdout, this.#hash),
      stderr: slice(this.#begin.stderr, this.#stderrBytes, this.#stderrHash),
    };
    return {
      evidence: this.#evidence(asked),
      remarks: [],
      parser: summariseParser(this.#parser.counts()),
      exit,
      endedByUs: this.#endedByUs,
      streams,
      outlived: this.#isOver || this.#decisions.stopped,
      stopped: this.#decisions.stopped,
    };
  }

  // Asks one question at a time: the next attempt asks the next one.
  #evidence(asked: NativeRequest | null): TurnEvidence {
    const evidence = this.#parser.evidence();
    const continues = this.#resident !== null && this.#resident === this.#input.waiter?.resident;
    const trouble = this.#trouble === null ? null : classifyFailure(this.#trouble);
    const requested = new Set(this.#parser.openRequests.map(({ question }) => question));
    const unanswered = this.#parser.openRequests.flatMap(({ question }) => question ?? []);
    const first = asked?.question ?? (this.#decisions.stopped ? undefined : unanswered[0]);
    const questions = first
      ? [first]
      : this.#decisions.stopped
        ? []
        : evidence.questions.filter((question) => !requested.has(question));
    return {
      ...evidence,
      // The output names the session only when it is opened. A turn that was stopped before it began, or that continues
      // in the same process, has the session of the run.
      sessionId:
        evidence.sessionId ??
        (this.#decisions.stopped || continues ? (this.#context.handle?.handle_value ?? null) : null),
      failure: evidence.failure ?? trouble,
      complaint: evidence.complaint ?? trouble,
      questions: questions.map((question) =>
        question.action ? Object.assign({}, question, { digest: this.#decisions.digestOf(question) }) : question,
      ),
    };
  }

  // The first error explains the later ones.
  #note(error: unknown): void {
    this.#trouble ??= error instanceof Error ? error.message : String(error);
  }

  #endBy(reason: EndReason): void {
    // Too late for this turn: the run waits, and a cancel ends the process through `residents`.
    if (this.#stays) return;
    this.#endedByUs ??= reason;
    this.#stop.abort();
    void this.#resident?.close();
  }
}
