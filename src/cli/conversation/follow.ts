// Shows a run while it goes on, from a cursor until it waits or has ended. It only reads the store: the run does not
// know that it is watched. Events as lines for programs, a conversation with a progress line for people.
import type { FcmpEvent } from '../../fcmp/event.js';
import { damageIn, readStoredJson } from '../../kernel/stored-json.js';
import { isTerminal } from '../../run/statechart.js';
import type { Protocol, RunRecord, Store } from '../../store/store.js';
import { ConversationView, type ViewOptions } from '../../terminal/conversation.js';
import { progressLine } from '../../terminal/progress.js';
import { Screen } from '../../terminal/screen.js';
import type { Style } from '../../terminal/style.js';
import { headOf, loadReadable } from '../../journal/load-run.js';
import { describePiece, joinPieces, readReadable, type DamagedPiece } from '../../journal/read-readable.js';
import { LineWriter, type Io } from '../io.js';
import { tellDamage } from '../reading/tell-damage.js';

const POLL_MS = 50;
// After so many looks without news, a word that is not known to be whole is shown as it stands.
const QUIET_LOOKS = 3;
const PAGE = 500;

export type Stop = 'waiting' | 'ended' | 'lost' | 'left';

export interface Watched {
  readonly stop: Stop;
  readonly run: RunRecord;
}

export interface Viewer {
  // The next events, in their order.
  show(lines: readonly string[]): Promise<void>;
  // Nothing is new.
  idle(): void;
  // Makes room for a question to the person; the conversation goes on below it.
  stepAside(): void;
  // Shows nothing more for now.
  rest(): void;
}

export interface FollowOptions {
  readonly store: Store;
  readonly runId: string;
  readonly viewer: Viewer;
  readonly protocol?: Protocol;
  // A run that waits is watched on.
  readonly throughWaiting?: boolean;
  // False when nobody works on it any more.
  readonly isAlive?: () => boolean | Promise<boolean>;
  // Resolves when the person wants to stop watching.
  readonly leave?: Promise<void>;
  // Called when it begins to wait, where that is watched through.
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
    // One for all the pauses: each of its own would stay until the end.
    void leave?.then(() => {
      left = true;
      this.#wake?.();
    });
    for (;;) {
      const alive = await isAlive();
      // Read before its events: when there are none, it is known up to this state.
      const run = await loadReadable(store, runId);
      const { lines, lastSeq, damaged } = await readReadable(store, {
        runId,
        protocol,
        afterSeq: this.#seq,
        limit: PAGE,
        head: headOf(run, protocol),
      });
      tellDamaged(protocol, damaged, this.#io);
      const isNew = lastSeq > this.#seq;
      this.#seq = lastSeq;
      if (left) {
        // What was read is shown: it will not be read again.
        await viewer.show(lines);
        viewer.stepAside();
        return { stop: 'left', run };
      }
      if (isNew) {
        await viewer.show(lines);
        continue;
      }
      const stop = stopOf(run, alive, throughWaiting);
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

function stopOf(run: RunRecord, alive: boolean, throughWaiting: boolean): Stop | null {
  if (isTerminal(run.status)) return 'ended';
  if (run.status === 'waiting_user') return throughWaiting ? null : 'waiting';
  return alive ? null : 'lost';
}

// The text of an event; a line that is no JSON shows as such and does not end the conversation.
export function push(view: ConversationView, line: string): string {
  try {
    return view.push(readStoredJson(line) as FcmpEvent);
  } catch (error) {
    if (!damageIn(error)) throw error;
    return '(a damaged event)\n';
  }
}

export function tellDamaged(protocol: Protocol, pieces: readonly DamagedPiece[], io: Io): void {
  tellDamage(
    joinPieces(pieces).map((piece) => describePiece(protocol, piece)),
    io,
  );
}

// For programs: each event as it is stored.
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
