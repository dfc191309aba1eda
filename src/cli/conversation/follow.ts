// Shows a run from a cursor until it waits or has ended. Only reads the store, so watching never affects the run.
// Programs get events as lines, people a conversation with a progress line.
import type { FcmpEvent } from '../../fcmp/event.js';
import { damageIn, readStoredJson } from '../../kernel/stored-json.js';
import { isTerminal } from '../../run/statechart.js';
import type { Protocol, RunRecord, Store } from '../../store/store.js';
import { ConversationView, type ViewOptions } from '../../terminal/conversation.js';
import { progressLine } from '../../terminal/progress.js';
import { Screen } from '../../terminal/screen.js';
import type { Style } from '../../terminal/style.js';
import { headOf, loadReadable } from '../../journal/load-run.js';
import { readReadable } from '../../journal/read-readable.js';
import { drained, LineWriter, type Io } from '../io.js';
import { DamageReport } from '../reading/report-damage.js';
import { texts } from '../language/language.js';

const POLL_MS = 50;
// After this many polls without news, an incomplete word is shown as it is.
const QUIET_LOOKS = 3;
// A page is bounded in events and in size, because it is rendered at once.
const PAGE = { limit: 500, maxChars: 1_000_000 };

type Stop = 'waiting' | 'ended' | 'lost' | 'left';

export interface Watched {
  readonly stop: Stop;
  readonly run: RunRecord;
}

export interface Viewer {
  // Shows the next events, in order.
  show(lines: readonly string[]): Promise<void>;
  // Called when a poll found nothing new.
  idle(): void;
  // Makes room for a question to the person; the conversation continues below it.
  stepAside(): void;
  // Finishes the output; nothing more is shown for now.
  rest(): void;
}

export interface FollowOptions {
  readonly store: Store;
  readonly runId: string;
  readonly viewer: Viewer;
  readonly protocol?: Protocol;
  // Continues to watch while the run waits.
  readonly throughWaiting?: boolean;
  // False when no process works on the run.
  readonly isAlive?: () => boolean | Promise<boolean>;
  // Resolves when the person wants to stop watching.
  readonly leave?: Promise<void>;
  // Called when the run starts to wait, with throughWaiting.
  readonly onWaiting?: () => void;
}

export class Follower {
  readonly #options: FollowOptions;
  readonly #io: Io;
  #seq: number;
  #wake: (() => void) | null = null;

  constructor(options: FollowOptions, cursor: number, io: Io) {
    this.#options = options;
    this.#io = io;
    this.#seq = cursor;
  }

  async follow(changes: Partial<Pick<FollowOptions, 'isAlive' | 'leave'>> = {}): Promise<Watched> {
    const {
      store,
      runId,
      viewer,
      protocol = 'fcmp',
      throughWaiting = false,
      isAlive = () => true,
      leave,
    } = { ...this.#options, ...changes };
    let left = false;
    let waiting = false;
    // One listener for all pauses: a listener per pause would accumulate until the end.
    void leave?.then(() => {
      left = true;
      this.#wake?.();
    });
    for (;;) {
      const alive = await isAlive();
      // The run is read before its events: if there are no new events, this state is current.
      const run = await loadReadable(store, runId);
      const { lines, lastSeq, damaged } = await readReadable(store, {
        runId,
        protocol,
        afterSeq: this.#seq,
        ...PAGE,
        head: headOf(run, protocol),
      });
      const damage = new DamageReport(protocol, this.#io);
      damage.add(damaged);
      damage.end();
      const isNew = lastSeq > this.#seq;
      this.#seq = lastSeq;
      if (left) {
        // Shows the lines that were read, because the cursor is already behind them.
        await viewer.show(lines);
        viewer.stepAside();
        return { stop: 'left', run };
      }
      if (isNew) {
        await viewer.show(lines);
        continue;
      }
      const stop = stopOf(run, { alive, throughWaiting });
      if (stop) {
        viewer.rest();
        return { stop, run };
      }
      viewer.idle();
      if (run.status === 'waiting_user' && !waiting) this.#options.onWaiting?.();
      waiting = run.status === 'waiting_user';
      await this.#pause();
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#io.timers.set(POLL_MS, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }
}

function stopOf(
  run: RunRecord,
  { alive, throughWaiting }: { readonly alive: boolean; readonly throughWaiting: boolean },
): Stop | null {
  if (isTerminal(run.status)) return 'ended';
  if (run.status === 'waiting_user') return throughWaiting ? null : 'waiting';
  return alive ? null : 'lost';
}

// Renders an event. A line that is not JSON is shown as damaged and does not end the conversation.
export function push(view: ConversationView, line: string): string {
  try {
    return view.push(readStoredJson(line) as FcmpEvent);
  } catch (error) {
    if (!damageIn(error)) throw error;
    return `${texts().say.damagedEvent}\n`;
  }
}

// For programs: prints each event as it is stored.
export function createLineViewer(io: Io): Viewer {
  const writer = new LineWriter(io);
  return {
    show: async (lines) => {
      for (const line of lines) writer.addLine(line);
      await writer.flush();
    },
    idle: () => {},
    stepAside: () => {},
    rest: () => {},
  };
}

// For people.
export function createScreenViewer(io: Io, style: Style, options: Omit<ViewOptions, 'live'> = {}): Viewer {
  const view = new ConversationView(style, { ...options, live: true });
  const screen = new Screen((text) => void io.stdout.write(text), { tty: io.terminal.stdout });
  let quiet = 0;
  return {
    show: async (lines) => {
      quiet = 0;
      screen.write(lines.map((line) => push(view, line)).join(''));
      await drained(io.stdout);
    },
    idle: () => {
      quiet += 1;
      if (quiet === QUIET_LOOKS) screen.write(view.pause());
      screen.status(progressLine(view.activity, io.clock.now(), style));
    },
    stepAside: () => {
      screen.write(view.pause());
      screen.status(null);
      screen.endLine();
    },
    rest: () => {
      screen.status(null);
      screen.write(view.end());
    },
  };
}
