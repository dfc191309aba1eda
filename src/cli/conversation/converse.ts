// A run in front of a person or a program: shown as it goes on, answered in place, and left or canceled by Ctrl-C.
// Whatever happens here, the run itself is safe: its worker goes on, and its questions wait.
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
import type { Job } from './worker.js';

const POLL_MS = 250;

// What a person can do about a failure before trying again.
const ADVICE: Readonly<Record<string, string>> = {
  AUTO_MODE_CANNOT_ASK: 'The run was unattended. Start it again with --interactive (-i) to let the agent ask you.',
  ENGINE_NOT_FOUND: 'parley doctor tells which engines there are, and where it looked',
};

export interface ConverseOptions {
  readonly json: boolean;
  // Questions are answered in place; else the command ends when the run waits.
  readonly answer: boolean;
  readonly cursor?: number;
}

export async function converse(
  data: ReadData,
  runId: string,
  work: Work | null,
  options: ConverseOptions,
  io: Io,
): Promise<number> {
  return new Conversation(data, runId, work, options, io).run();
}

class Conversation {
  readonly #data: ReadData;
  readonly #runId: string;
  readonly #options: ConverseOptions;
  readonly #io: Io;
  readonly #follower: Follower;
  #work: Work | null;
  // Interrupted before anybody watched.
  #early: boolean;
  #rescued = false;

  constructor(data: ReadData, runId: string, work: Work | null, options: ConverseOptions, io: Io) {
    this.#data = data;
    this.#runId = runId;
    this.#work = work;
    this.#early = work?.interrupted ?? false;
    this.#options = options;
    this.#io = io;
    const viewer = options.json ? createLineViewer(io) : createScreenViewer(io, styleOf(io), this.#pageOptions());
    this.#follower = new Follower({ store: data.store, runId, viewer }, options.cursor ?? 0, io);
  }

  async run(): Promise<number> {
    // Whoever stops reading leaves the run to itself.
    this.#io.setBrokenPipeCode(EXIT.interrupted);
    for (;;) {
      const watched = await this.#watch();
      const code = await this.#afterWatching(watched);
      if (code !== null) return code;
    }
  }

  // Until the run waits or has ended, or the person interrupts.
  async #watch(): Promise<Watched> {
    const stops: (() => void)[] = [];
    const leave = new Promise<void>((resolve) => {
      const take = (): void => (this.#isPerson() ? resolve() : this.#interrupt());
      stops.push(
        this.#io.onSignal('SIGINT', take),
        this.#io.onSignal('SIGTERM', () => this.#interrupt()),
      );
      if (this.#early) take();
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

  // Where questions are answered, a long approval is shown page by page.
  #pageOptions(): { readonly firstPage?: () => number } {
    return this.#options.answer && this.#isPerson() ? { firstPage: () => pageRows(this.#io) } : {};
  }

  #isPerson(): boolean {
    return this.#io.terminal.stdin && this.#io.terminal.stdout && !this.#options.json;
  }

  // Our own worker, or whoever works for the directory now.
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

  // Nobody plays it any more: a new worker ends it with its code. Once is enough; else something is broken.
  async #rescue(run: RunRecord): Promise<number | null> {
    if (this.#rescued) return this.#end(run);
    this.#rescued = true;
    await this.#settle();
    return null;
  }

  async #askWhatNow(run: RunRecord): Promise<number | null> {
    const asker = new LineAsker(this.#io);
    try {
      const chosen = await this.#choose(
        asker,
        'The agent is still at work.',
        '[l]eave it running, [c]ancel it, or Enter to go on watching',
      );
      if (chosen === 'cancel') this.#interrupt();
      if (chosen !== 'leave') return null;
    } finally {
      asker.close();
    }
    // It may have stopped by itself while the person thought about it.
    const { status } = await loadRun(this.#data.store, run.run_id);
    if (isTerminal(status)) return null;
    if (status === 'waiting_user') return this.#endLater();
    this.#say(
      `left running: ${run.run_id}\n  parley watch ${run.run_id}    goes on watching\n  parley cancel ` +
        `${run.run_id}   ends it`,
    );
    return EXIT.interrupted;
  }

  async #answer(run: RunRecord): Promise<number | null> {
    const pending = await this.#data.store.loadPending(run.run_id);
    // Somebody was quicker.
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
        const chosen = await this.#choose(
          asker,
          'The question waits.',
          '[l]eave it waiting, [c]ancel the run, or Enter to answer',
          news,
        );
        if (chosen === 'news') return this.#afterNews(pending);
        if (chosen === 'cancel') return this.#cancel();
        if (chosen === 'leave') return this.#endLater();
      } else if (await this.#reply(pending, outcome)) return null;
    }
  }

  // False: it could not be given just now, and the person may try again.
  async #reply(pending: InteractionRecord, given: Reply): Promise<boolean> {
    try {
      await this.#start({ type: 'reply', run_id: this.#runId, reply: replyOf(pending.interaction_id, given) });
      if (given.kind === 'reply') this.#say(wrapShown(confirmSent(given), styleOf(this.#io, 'stderr').width));
      return true;
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      if (error.code === 'RUN_NOT_WAITING' || error.code === 'INTERACTION_STALE') return true;
      this.#say(safeText(error.message));
      return false;
    }
  }

  async #cancel(): Promise<number | null> {
    await cancelRun(this.#data.path, this.#runId, this.#io);
    return null;
  }

  // Another answer came first, or the time of the question is over.
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
    // Nobody is there to decide it, so a worker is asked to.
    if (now?.state === 'pending') await this.#settle();
    return null;
  }

  async #settle(): Promise<void> {
    try {
      await this.#start({ type: 'settle', run_id: this.#runId });
    } catch (error) {
      // Whoever writes there now has done it when it began.
      if (!(error instanceof RequestError) || error.code !== 'DATA_DIR_IN_USE') throw error;
    }
  }

  async #endLater(): Promise<number> {
    const run = await this.#data.store.loadRun(this.#runId);
    return run ? this.#end(run) : EXIT.failed;
  }

  async #end(run: RunRecord): Promise<number> {
    if (this.#options.json) {
      const pending = await this.#data.store.loadPending(run.run_id);
      this.#io.stdout.write(`${runLine(run, pending, this.#io.clock.now())}\n`);
    } else if (run.status === 'waiting_user') {
      this.#say(`waits for an answer: ${run.run_id}\n  parley reply ${run.run_id}`);
    } else if (run.status === 'failed') {
      const advice = ADVICE[run.error?.code ?? ''];
      // Why it failed was shown with the conversation.
      const ways = `Try again: parley retry ${run.run_id}    More: parley show ${run.run_id} --details`;
      this.#say(`${advice === undefined ? '' : `${advice}\n`}${ways}`);
    }
    return exitCodeOf(run.status);
  }

  #say(text: string): void {
    this.#io.stderr.write(`${text}\n`);
  }

  // What there is to choose stands above the prompt: a line editor needs a prompt that fits on its line. Asks until it
  // is clear.
  async #choose(
    asker: LineAsker,
    what: string,
    choices: string,
    news?: Promise<void>,
  ): Promise<'leave' | 'cancel' | 'on' | 'news'> {
    const style = styleOf(this.#io);
    this.#io.stdout.write(`${paint(style, 'bold', wrapText(what, style.width))}\n`);
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
