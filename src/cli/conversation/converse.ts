// Shows a run to a person or a program while it continues, lets a person answer its questions, and leaves or cancels it
// on Ctrl-C. A failure here does not affect the run: its worker continues, and its questions stay pending.
import { loadRun } from '../../journal/load-run.js';
import { RequestError } from '../../run/request-error.js';
import { isTerminal } from '../../run/statechart.js';
import type { InteractionRecord, RunRecord } from '../../store/store.js';
import { confirmSent } from '../../terminal/answer.js';
import type { Question } from '../../terminal/question-text.js';
import { safeText } from '../../terminal/safe-text.js';
import { paint } from '../../terminal/style.js';
import { wrapShown } from '../../terminal/wrap-exact.js';
import { wrapText } from '../../terminal/wrap.js';
import { prepareQuestion, replyOf, type Reply } from './ask-question.js';
import { LineAsker } from './ask.js';
import { cancelRun } from './cancel-run.js';
import { createLineViewer, createScreenViewer, Follower, type Watched } from './follow.js';
import { EXIT, exitCodeOf, type Io } from '../io.js';
import type { ReadData } from '../open-data.js';
import { pageRows } from './question-pages.js';
import { startWork, type Work } from './start-work.js';
import { styleOf } from '../style.js';
import { runLine } from './tell.js';
import type { Job } from './assignment.js';
import { explainRefusal, texts } from '../language/language.js';

const POLL_MS = 250;

export interface ConverseOptions {
  readonly runId: string;
  // The worker or server that runs the turn; null if this command started none.
  readonly work: Work | null;
  readonly json: boolean;
  // Lets the person answer questions here; otherwise the command ends when the run waits.
  readonly answer: boolean;
  // The last event that the person has seen.
  readonly cursor?: number;
}

export async function converse(data: ReadData, options: ConverseOptions, io: Io): Promise<number> {
  return new Conversation(data, options, io).run();
}

class Conversation {
  readonly #data: ReadData;
  readonly #runId: string;
  readonly #options: ConverseOptions;
  readonly #io: Io;
  readonly #follower: Follower;
  #work: Work | null;
  // A signal arrived before this command watched the run.
  #early: boolean;
  #rescued = false;

  constructor(data: ReadData, options: ConverseOptions, io: Io) {
    this.#data = data;
    this.#runId = options.runId;
    this.#work = options.work;
    this.#early = options.work?.interrupted ?? false;
    this.#options = options;
    this.#io = io;
    const viewer = options.json ? createLineViewer(io) : createScreenViewer(io, styleOf(io), this.#pageOptions());
    this.#follower = new Follower({ store: data.store, runId: options.runId, viewer }, options.cursor ?? 0, io);
  }

  async run(): Promise<number> {
    // If the reader closes the pipe, the run continues unwatched.
    this.#io.setBrokenPipeCode(EXIT.interrupted);
    for (;;) {
      const watched = await this.#watch();
      const code = await this.#afterWatching(watched);
      if (code !== null) return code;
    }
  }

  // Watches until the run waits or has ended, or the person interrupts.
  async #watch(): Promise<Watched> {
    const stops: (() => void)[] = [];
    const leave = new Promise<void>((resolve) => {
      const handleSignal = (): void => (this.#isPerson() ? resolve() : this.#interrupt());
      stops.push(
        this.#io.onSignal('SIGINT', handleSignal),
        this.#io.onSignal('SIGTERM', () => this.#interrupt()),
      );
      if (this.#early) handleSignal();
      this.#early = false;
    });
    try {
      return await this.#follower.follow({ isAlive: () => this.#isAlive(), leave });
    } finally {
      for (const stop of stops) stop();
    }
  }

  async #afterWatching({ stop, run }: Watched): Promise<number | null> {
    switch (stop) {
      case 'ended':
        return this.#end(run);
      case 'waiting':
        return this.#options.answer && this.#isPerson() ? this.#answer(run) : this.#end(run);
      case 'lost':
        return this.#rescue(run);
      case 'left':
        return this.#askWhatNow(run);
    }
  }

  // A long approval is shown page by page if it can be answered here.
  #pageOptions(): { readonly firstPage?: () => number } {
    return this.#options.answer && this.#isPerson() ? { firstPage: () => pageRows(this.#io) } : {};
  }

  #isPerson(): boolean {
    return this.#io.terminal.stdin && this.#io.terminal.stdout && !this.#options.json;
  }

  // Whether our own worker, or another writer of the directory, still runs.
  async #isAlive(): Promise<boolean> {
    return this.#work?.alive() === true || this.#data.hasWriter();
  }

  #interrupt(): void {
    if (this.#work?.alive()) this.#work.interrupt();
    else void cancelRun(this.#data.path, this.#runId, this.#io).catch(() => {});
  }

  async #start(job: Job): Promise<void> {
    this.#work = await startWork({ data: this.#data.path, job }, this.#io);
    this.#early = this.#work.interrupted;
  }

  // The worker of the run has exited: a new worker ends the run with its error code. Tried once; a second time would be
  // a defect.
  async #rescue(run: RunRecord): Promise<number | null> {
    if (this.#rescued) return this.#end(run);
    this.#rescued = true;
    await this.#runDueWork();
    return null;
  }

  async #askWhatNow(run: RunRecord): Promise<number | null> {
    const asker = new LineAsker(this.#io);
    try {
      const chosen = await this.#choose(asker, {
        state: texts().say.stillWorking,
        choices: texts().say.stillWorkingChoices,
      });
      if (chosen === 'cancel') this.#interrupt();
      if (chosen !== 'leave') return null;
    } finally {
      asker.close();
    }
    // The run may have stopped while the person was deciding.
    const { status } = await loadRun(this.#data.store, run.run_id);
    if (isTerminal(status)) return null;
    if (status === 'waiting_user') return this.#endLater();
    this.#say(texts().say.leftRunning(run.run_id));
    return EXIT.interrupted;
  }

  async #answer(run: RunRecord): Promise<number | null> {
    const pending = await this.#data.store.loadPendingInteraction(run.run_id);
    // Another answer came first.
    if (!pending) return null;
    const asker = new LineAsker(this.#io);
    const { news, stop } = this.#watchForNews(pending);
    try {
      await asker.forgetTyped();
      return await this.#converse(asker, pending, news);
    } finally {
      stop();
      asker.close();
    }
  }

  async #converse(asker: LineAsker, pending: InteractionRecord, news: Promise<void>): Promise<number | null> {
    const askAgain = prepareQuestion({ question: pending.question as unknown as Question, asker, news }, this.#io);
    for (;;) {
      const outcome = await askAgain();
      if (outcome.kind === 'news') return this.#afterNews(pending);
      if (outcome.kind === 'later') return this.#endLater();
      if (outcome.kind === 'cancel') return this.#cancel();
      if (outcome.kind === 'interrupt') {
        const chosen = await this.#choose(asker, {
          state: texts().say.questionWaits,
          choices: texts().say.questionChoices,
          news,
        });
        if (chosen === 'news') return this.#afterNews(pending);
        if (chosen === 'cancel') return this.#cancel();
        if (chosen === 'leave') return this.#endLater();
      } else if (await this.#reply(pending, outcome)) return null;
    }
  }

  // Returns false if the reply could not be sent and the person may try again.
  async #reply(pending: InteractionRecord, reply: Reply): Promise<boolean> {
    try {
      await this.#start({ type: 'reply', run_id: this.#runId, reply: replyOf(pending.interaction_id, reply) });
      if (reply.kind === 'reply') this.#say(wrapShown(confirmSent(reply), styleOf(this.#io, 'stderr').width));
      return true;
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      if (error.code === 'RUN_NOT_WAITING' || error.code === 'INTERACTION_STALE') return true;
      this.#say(safeText(explainRefusal(error).message));
      return false;
    }
  }

  async #cancel(): Promise<number | null> {
    await cancelRun(this.#data.path, this.#runId, this.#io);
    return null;
  }

  // Resolves when another answer came first or the question timed out.
  #watchForNews(pending: InteractionRecord): { news: Promise<void>; stop: () => void } {
    let cancel: (() => void) | null = null;
    const news = new Promise<void>((resolve) => {
      const look = async (): Promise<void> => {
        const now = await this.#data.store.loadInteraction(pending.interaction_id).catch(() => pending);
        if (now?.state !== 'pending' || (now.decides && this.#io.clock.now() >= now.due_at)) resolve();
        else cancel = this.#io.timers.set(POLL_MS, () => void look());
      };
      void look();
    });
    return { news, stop: () => cancel?.() };
  }

  async #afterNews(pending: InteractionRecord): Promise<null> {
    const now = await this.#data.store.loadInteraction(pending.interaction_id);
    // No process decides the expired question, so a worker is started for it.
    if (now?.state === 'pending') await this.#runDueWork();
    return null;
  }

  async #runDueWork(): Promise<void> {
    try {
      await this.#start({ type: 'run_due', run_id: this.#runId });
    } catch (error) {
      // The process that writes there now ran all due work when it started.
      if (!(error instanceof RequestError) || error.code !== 'DATA_DIR_IN_USE') throw error;
    }
  }

  async #endLater(): Promise<number> {
    const run = await this.#data.store.loadRun(this.#runId);
    return run ? this.#end(run) : EXIT.failed;
  }

  async #end(run: RunRecord): Promise<number> {
    if (this.#options.json) {
      const pending = await this.#data.store.loadPendingInteraction(run.run_id);
      this.#io.stdout.write(`${runLine(run, pending, this.#io.clock.now())}\n`);
    } else if (run.status === 'waiting_user') {
      this.#say(texts().say.waiting(run.run_id));
    } else if (run.status === 'failed') {
      const advice = run.error === null ? undefined : explainRefusal(run.error).hint;
      // The conversation has already shown why it failed.
      this.#say(`${advice === undefined ? '' : `${advice}\n`}${texts().say.retryOrShow(run.run_id)}`);
    }
    return exitCodeOf(run.status);
  }

  #say(text: string): void {
    this.#io.stderr.write(`${text}\n`);
  }

  // Prints the choices above the prompt, because a line editor needs a prompt that fits on one line. Asks until the
  // person types one of them, or until `news` resolves.
  async #choose(
    asker: LineAsker,
    { state, choices, news }: { readonly state: string; readonly choices: string; readonly news?: Promise<void> },
  ): Promise<'leave' | 'cancel' | 'on' | 'news'> {
    const style = styleOf(this.#io);
    this.#io.stdout.write(`${paint(style, 'bold', wrapText(state, style.width))}\n`);
    for (;;) {
      this.#io.stdout.write(`${wrapText(choices, style.width)}\n`);
      const typed = await asker.ask('> ', news);
      if (typed.kind === 'news') return 'news';
      const word = typed.kind === 'line' ? typed.text.trim().toLowerCase() : 'l';
      if (word === 'l' || word === 'leave') return 'leave';
      if (word === 'c' || word === 'cancel') return 'cancel';
      if (word === '') return 'on';
    }
  }
}
