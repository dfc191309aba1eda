// Plays a turn of an engine that stays: hands the answer to the process that waits for it, or starts one that goes on
// with the session; reads what it says until the turn is over or it asks for a person. `starting` → `listening` → over
// | asked | gone | ended by us. A run that then waits keeps its process; any other end closes it first.
import { createHash } from 'node:crypto';
import type { EngineCommand } from '../engines/engine.js';
import { MAX_LINE_BYTES } from '../engines/framing.js';
import type { NativeRequest } from '../engines/native-request.js';
import { createTurnParser } from '../engines/registry.js';
import type { Conversation, Resident, ResidentRules } from '../engines/resident.js';
import { newMemory, type ReaderMemory, type TurnParser } from '../engines/turn-parser.js';
import { classifyFailure } from '../engines/auth-failure.js';
import { invariant } from '../kernel/invariant.js';
import { asObject, asString } from '../kernel/json.js';
import type { EndReason } from '../process/child.js';
import { draft } from '../rasp/draft.js';
import type { TurnEvidence } from '../run/evidence.js';
import type { Exit } from '../run/judge-completion.js';
import { TurnRefusedError } from '../run/turn-refused-error.js';
import { buildFirstPrompt, buildReplyPrompt } from '../run/turn-prompt.js';
import type { Resolution, RunRecord } from '../store/store.js';
import { Decisions } from './decisions.js';
import { summariseParser } from './parser-summary.js';
import { writeCommand } from './play-process.js';
import { prepareTurn } from './prepare-turn.js';
import type { Residents, Waiter } from './residents.js';
import { runFolder } from '../journal/run-folder.js';
import { logsOf, readEnds, readLog, slice, syncLog, type LogEnds, type LogPaths } from '../journal/turn-logs.js';
import { PROCESS_LOST } from './sticky.js';
import { TurnClocks } from './turn-clocks.js';
import {
  checkLease,
  fail,
  failStart,
  settle,
  stopElsewhere,
  weigh,
  whileHeld,
  type Played,
  type TurnScene,
} from './turn-scene.js';
import { reasonOf } from '../kernel/system-error.js';

export interface ResidentStage {
  readonly command: EngineCommand;
  readonly program: readonly string[];
  // The process that has waited for the answer, if it is still there.
  readonly waiter: Waiter | null;
  readonly residents: Residents;
  // The session lives in the process and nowhere else.
  readonly sticky: boolean;
}

const UNKNOWN_EXIT: Exit = { code: null, signal: null };

export async function playResident(scene: TurnScene, stage: ResidentStage): Promise<RunRecord> {
  const turn = new ResidentTurn(
    scene,
    stage,
    await whileHeld(scene.deps, () => readEnds(scene.deps.store, scene.writer.run)),
  );
  try {
    return await turn.play();
  } catch (error) {
    // Nobody would hear it any more.
    await turn.abandon();
    throw error;
  }
}

class ResidentTurn {
  readonly #scene: TurnScene;
  readonly #rules: ResidentRules;
  readonly #stage: ResidentStage;
  readonly #begin: LogEnds;
  readonly #logs: LogPaths;
  readonly #memory: ReaderMemory;
  readonly #parser: TurnParser;
  readonly #clocks: TurnClocks;
  readonly #stop = new AbortController();
  readonly #hash = createHash('sha256');
  #at: number;
  #resident: Resident | null;
  #endedByUs: EndReason | null = null;
  // Why it could not even begin.
  #trouble: string | null = null;
  // The turn was over, or somebody is to be asked, while the process was there.
  #isOver = false;
  // It is kept for the run, which waits.
  #stays = false;
  readonly #stderrHash = createHash('sha256');
  #stderrBytes = 0;
  readonly #decisions: Decisions;
  readonly #answered = new Set<NativeRequest['id']>();

  constructor(scene: TurnScene, stage: ResidentStage, begin: LogEnds) {
    const { run } = scene.writer;
    invariant(scene.engine.resident, 'the engine stays');
    this.#rules = scene.engine.resident;
    this.#scene = scene;
    this.#stage = stage;
    this.#begin = begin;
    this.#at = begin.stdout;
    this.#logs = logsOf(scene.engine, runFolder(scene.deps.dataDir, run.run_id), run.attempt_number);
    this.#memory = stage.waiter?.memory ?? newMemory(scene.handle?.handle_value ?? null);
    this.#parser = createTurnParser(scene.engine, scene.version, { at: begin, memory: this.#memory });
    this.#clocks = new TurnClocks(scene);
    this.#decisions = new Decisions(scene);
    this.#resident = stage.waiter?.resident ?? null;
  }

  async abandon(): Promise<void> {
    this.#clocks.stop();
    await this.#resident?.close();
  }

  async play(): Promise<RunRecord> {
    await this.#leaveUnlessNeeded();
    // Its session was there and nowhere else.
    if (this.#resident === null && this.#stage.sticky && this.#scene.handle !== null)
      return fail(this.#scene.deps, this.#scene.writer.run, PROCESS_LOST);
    // Nothing has to be done for it, and the process that could be told is gone.
    if (this.#resident === null && this.#decisions.given === 'cancel') {
      this.#decisions.stop();
      return this.#conclude(null, UNKNOWN_EXIT);
    }
    this.#clocks.start(this.#parser, (reason) => this.#endBy(reason));
    this.#scene.control.attach({ end: (reason) => this.#endBy(reason) });
    checkLease(this.#scene);
    const refused = this.#resident === null ? await this.#start() : null;
    const resident = this.#resident;
    if (refused || resident === null) {
      this.#clocks.stop();
      return refused ?? this.#conclude(null, UNKNOWN_EXIT);
    }
    checkLease(this.#scene);
    await this.#speak(resident).catch((error: unknown) => this.#note(error));
    const asked = this.#trouble === null ? await this.#listen(resident) : null;
    this.#clocks.stop();
    this.#isOver = asked !== null || this.#parser.turnOver;
    if (this.#isOver && (await this.#wouldWait(asked)) && this.#endedByUs === null) {
      // Before that is stored: whoever answers or ends the run from then on finds its process.
      this.#stays = true;
      await whileHeld(this.#scene.deps, async () => this.#scene.deps.cluster?.hold(this.#scene.writer.run.run_id));
      this.#stage.residents.keep(this.#scene.writer.run.run_id, {
        resident,
        memory: this.#memory,
        request: asked,
        sticky: this.#stage.sticky,
      });
      return this.#conclude(asked, null);
    }
    const { exit, error } = await resident.close();
    if (error) this.#note(error);
    return this.#conclude(asked, exit);
  }

  // A process that does not wait for this answer any more is of no use; another goes on with the session.
  async #leaveUnlessNeeded(): Promise<void> {
    const { waiter } = this.#stage;
    if (!waiter || (waiter.resident.isAlive && (waiter.request === null || waiter.resident.waitsFor(waiter.request))))
      return;
    await waiter.resident.close();
    this.#resident = null;
  }

  async #wouldWait(asked: NativeRequest | null): Promise<boolean> {
    const { transition } = await weigh(this.#scene, this.#played(asked, UNKNOWN_EXIT));
    return transition.event === 'turn.needs_input';
  }

  // With all that is in the logs by now, which is on the disk before the change of state is stored. Without an exit the
  // process goes on: what it says next belongs to the next turn.
  async #conclude(asked: NativeRequest | null, exit: Exit | null): Promise<RunRecord> {
    const { writer } = this.#scene;
    if (exit) await readLog(this.#logs.stdout, this.#at, (bytes) => this.#take(bytes));
    const { bytes } = await readLog(this.#logs.stderr, this.#begin.stderr, (chunk) => {
      this.#stderrHash.update(chunk);
      return writer.add(this.#parser.push('stderr', chunk));
    });
    this.#stderrBytes = bytes;
    void writer.add(this.#parser.finish());
    await Promise.all([writer.flush(), ...Object.values(this.#logs).map(syncLog)]);
    return settle(this.#scene, await weigh(this.#scene, this.#played(asked, exit ?? UNKNOWN_EXIT)));
  }

  // Answers the failed run when the engine is not even to be started.
  async #start(): Promise<RunRecord | null> {
    const { deps, engine, writer } = this.#scene;
    const { run } = writer;
    const prepared = await prepareTurn(this.#scene, null);
    if ('refused' in prepared) return failStart(this.#scene, prepared.refused);
    writeCommand(prepared.attempt.path, this.#stage.command, prepared.env);
    invariant(
      deps.host.startResident && run.spec.home !== null,
      'the host can start an engine that stays, in a home of its own',
    );
    try {
      this.#resident = await deps.host.startResident(engine, {
        program: this.#stage.program,
        folder: runFolder(deps.dataDir, run.run_id).path,
        home: run.spec.home,
        cwd: run.spec.cwd,
        env: prepared.env,
        mark: `${run.run_id}/${run.attempt_number}`,
        ...(deps.cluster ? { passesOver: `${run.run_id}/` } : {}),
        signal: this.#stop.signal,
      });
      void writer.add([
        draft('lifecycle.process.spawned', { pid: this.#resident.pid, start_time: this.#resident.startTime }),
      ]);
    } catch (error) {
      if (error instanceof TurnRefusedError)
        return failStart(this.#scene, { code: error.code, message: error.message });
      this.#note(error);
    }
    return null;
  }

  // The answer to what it waits for, or a turn of its own.
  async #speak(resident: Resident): Promise<void> {
    const { answered } = this.#scene;
    const { waiter } = this.#stage;
    const request = waiter?.resident === resident ? waiter.request : null;
    const resolution = answered?.resolution;
    if (request && resolution) return this.#answerWaiting(resident, request, resolution);
    this.#decisions.store();
    await resident.converse(this.#conversation(), this.#prompt());
  }

  async #answerWaiting(resident: Resident, request: NativeRequest, resolution: Resolution): Promise<void> {
    invariant(request.question, 'a person was asked');
    // First: what is no answer throws.
    const result = this.#rules.buildAnswer(request, resolution.response);
    if (request.question.kind === 'approval') await this.#decisions.apply(request.question, resolution);
    this.#answered.add(request.id);
    resident.answer(request, result);
    if (this.#decisions.stopped && !this.#rules.stopsByAnswer(request)) return resident.interrupt();
    const note = asString(asObject(resolution.response)?.note);
    if (note !== undefined && request.question.kind === 'approval' && !this.#decisions.stopped)
      await this.#tellNote(resident, note);
  }

  // The decision itself has arrived; a word that came too late fails nothing.
  async #tellNote(resident: Resident, note: string): Promise<void> {
    await resident.tell(note).catch((error: unknown) =>
      this.#scene.writer.add([
        draft('diagnostic.engine.warning', {
          message: `the note could not be given to the agent: ${reasonOf(error)}`,
        }),
      ]),
    );
  }

  // Answers what a person is to be asked, or null: the turn is over, or the process is gone.
  async #listen(resident: Resident): Promise<NativeRequest | null> {
    for await (const bytes of resident.lines(this.#at, this.#stop.signal)) {
      this.#clocks.silence.hold();
      try {
        await this.#take(bytes);
        if (bytes.length > MAX_LINE_BYTES) resident.refuseLine(bytes);
        // What another process has left in the log.
        if (this.#at <= resident.from) continue;
        if (this.#parser.turnOver) return null;
        // What else it asked for ends with the turn that is being stopped.
        if (this.#decisions.stopped) continue;
        for (const request of this.#parser.openRequests) {
          if (this.#answered.has(request.id) || !resident.waitsFor(request)) continue;
          if (await this.#isForPerson(resident, request)) return request;
        }
      } finally {
        this.#clocks.silence.release();
      }
    }
    return null;
  }

  async #take(bytes: Buffer): Promise<void> {
    const { writer } = this.#scene;
    this.#hash.update(bytes);
    this.#at += bytes.length;
    await writer.add(this.#parser.push('stdout', bytes));
    stopElsewhere(this.#scene, this.#parser);
  }

  // What nobody can be asked is refused; what was decided before is done once; the rest waits.
  async #isForPerson(resident: Resident, request: NativeRequest): Promise<boolean> {
    if (request.question === null) {
      this.#answered.add(request.id);
      resident.refuse(request, `${request.method} is not handled`);
      return false;
    }
    const decided = await this.#decisions.take(request.question);
    if (decided === null) return true;
    this.#answered.add(request.id);
    resident.answer(request, this.#rules.buildAnswer(request, decided.response));
    return false;
  }

  #conversation(): Conversation {
    const { spec } = this.#scene.writer.run;
    const { handle } = this.#scene;
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
    const { answered, writer } = this.#scene;
    const { spec } = writer.run;
    const resolution = answered?.resolution;
    if (!resolution) return buildFirstPrompt(spec.execution_mode, spec.prompt, true);
    // The answer to something that was asked in the middle of a turn that is no more.
    if (answered.question.channel === 'native')
      return this.#rules.describeAnswer(answered.question, resolution.response);
    return buildReplyPrompt(resolution.response);
  }

  #played(asked: NativeRequest | null, exit: Exit): Played {
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
      sticky: this.#stage.sticky,
      stopped: this.#decisions.stopped,
    };
  }

  // One question at a time: what else it waits for comes when this one is answered.
  #evidence(asked: NativeRequest | null): TurnEvidence {
    const evidence = this.#parser.evidence();
    const goesOn = this.#resident !== null && this.#resident === this.#stage.waiter?.resident;
    const trouble = this.#trouble === null ? null : classifyFailure(this.#trouble);
    const requested = new Set(this.#parser.openRequests.map(({ question }) => question));
    const unanswered = this.#parser.openRequests
      .filter(({ id }) => !this.#answered.has(id))
      .flatMap(({ question }) => question ?? []);
    const first = asked?.question ?? (this.#decisions.stopped ? undefined : unanswered[0]);
    const questions = first
      ? [first]
      : this.#decisions.stopped
        ? []
        : evidence.questions.filter((question) => !requested.has(question));
    return {
      ...evidence,
      // A turn that was stopped before it began in a process of its own has the session that it was to go on with, and
      // so has one in the process that already had it, even if that said nothing more.
      sessionId:
        evidence.sessionId ?? (this.#decisions.stopped || goesOn ? (this.#scene.handle?.handle_value ?? null) : null),
      failure: evidence.failure ?? trouble,
      complaint: evidence.complaint ?? trouble,
      questions: questions.map((question) =>
        question.action ? Object.assign({}, question, { digest: this.#decisions.digestOf(question) }) : question,
      ),
    };
  }

  // The first trouble explains the others.
  #note(error: unknown): void {
    this.#trouble ??= error instanceof Error ? error.message : String(error);
  }

  #endBy(reason: EndReason): void {
    // Too late for the turn; who wants the run ended finds it waiting.
    if (this.#stays) return;
    this.#endedByUs ??= reason;
    this.#stop.abort();
    void this.#resident?.close();
  }
}
