// An orchestrator on a real store that dies at a chosen call of the store, like its process would: from then on, none
// of its calls returns and nothing waits for it. Its engine is a shell that prints the test's output, so that a turn
// costs little.
import { singleHost } from '../../src/ownership/single-host.js';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createIds } from '../../src/kernel/ids.js';
import { Orchestrator } from '../../src/orchestrator/orchestrator.js';
import { listMarked } from '../../src/process/process-table.js';
import type { Timers } from '../../src/process/timers.js';
import { openDataDir, type DataDir } from '../../src/store/sqlite/data-dir.js';
import type { RunRecord, Store } from '../../src/store/store.js';
import type { SimulatedTime } from './simulated-timers.js';

export const SLOTS = 3;
export const SESSION = '5ce7e000-0000-4000-8000-000000000001';
// Records its turn first: started engines are known from the engines themselves.
const PLAY =
  'echo "$PARLEY_TURN" >> "$STARTS"; printf "%s" "$PLAY"; [ "$CODE" = hang ] && exec sleep 600; exit "$CODE"';
const NEVER = new Promise<never>(() => {});

export interface Bomb {
  // The call at which it dies, and whether the call is executed first.
  readonly calls: number;
  readonly moment: 'before' | 'after';
}

export interface Play {
  readonly print: string;
  readonly code: number | 'hang';
}

// One life from open to death or end: later calls get no response and start nothing.
interface Life {
  readonly isOver: boolean;
  end(): void;
  readonly death: Promise<never>;
}

export class Dead extends Error {
  override readonly name = 'Dead';
}

export class MortalOrchestrator {
  readonly root: string;
  readonly failures: unknown[] = [];
  readonly #time: SimulatedTime;
  // Turns whose process is starting or was started.
  readonly #begun = new Set<string>();
  readonly #play: (run: RunRecord) => Play;
  #data!: DataDir;
  #orchestrator: Orchestrator | null = null;
  #bomb: Bomb | null = null;
  #life: Life = { isOver: true, end: () => {}, death: NEVER };

  constructor(root: string, time: SimulatedTime, play: (run: RunRecord) => Play) {
    this.root = root;
    this.#time = time;
    this.#play = play;
  }

  // The stored data, independent of any life.
  get store(): Store {
    return this.#data.store;
  }

  get isDead(): boolean {
    return this.#life.isOver;
  }

  arm(bomb: Bomb | null): void {
    this.#bomb = bomb;
  }

  // Throws Dead if it dies during the call.
  async open(): Promise<void> {
    this.#data = await openDataDir(join(this.root, 'data'), { pid: process.pid });
    const life = beginLife();
    this.#life = life;
    this.#begun.clear();
    const { clock } = this.#time;
    const store = this.#mortal(this.#data.store, life);
    const deps = {
      store,
      clock,
      ids: createIds(clock),
      timers: mortalTimers(this.#time.createTimers(), life),
      dataDir: this.#data.path,
      queueLimit: () => 1000,
      ...singleHost(store),
      mayNeedProcess: false,
      runtime: {
        findProgram: async () => ['/bin/sh', '-c', PLAY],
        environment: (_engine: unknown, run: RunRecord) => {
          if (life.isOver) throw new Dead('died');
          this.#begun.add(`${run.run_id}/${run.attempt_number}`);
          const { print, code } = this.#play(run);
          return {
            PATH: process.env['PATH'] ?? '',
            STARTS: join(this.root, 'starts.txt'),
            PLAY: print,
            CODE: String(code),
          };
        },
        hasSession: async () => true,
        newSessionId: () => SESSION,
      },
    };
    this.#orchestrator = await this.alive(() =>
      Orchestrator.open(deps as never, {
        slots: SLOTS,
        recovery: { queued: 'requeue' },
        onFailure: (_run, error) => void (life.isOver || this.failures.push(error)),
      }),
    );
    await this.alive((orchestrator) => orchestrator.recovered());
  }

  // Returns the result; throws Dead if it dies before.
  alive<T>(ask: (orchestrator: Orchestrator) => Promise<T>): Promise<T> {
    return Promise.race([ask(this.#orchestrator as Orchestrator), this.#life.death]);
  }

  // In order; the caller that receives its death cleans up.
  async close(): Promise<void> {
    const [life, data] = [this.#life, this.#data];
    if (life.isOver) throw new Dead('died');
    await this.alive((orchestrator) => orchestrator.close());
    if (life.isOver) throw new Dead('died');
    await data.close();
  }

  // After its death: waits until its processes have exited and printed their last output.
  async bury(runIds: readonly string[]): Promise<void> {
    this.#bomb = null;
    this.#life.end();
    // Work between two calls of the store cannot be stopped there: it happened just before the end.
    const limit = Date.now() + 5000;
    while ([...this.#begun].some((turn) => !this.starts().includes(turn)) && Date.now() < limit)
      await new Promise((resolve) => setTimeout(resolve, 2));
    const mine = () => listMarked().filter(({ mark }) => runIds.some((id) => mark?.startsWith(`${id}/`)));
    for (const { pid } of mine()) killed(pid);
    while (mine().length > 0) await new Promise((resolve) => setTimeout(resolve, 2));
    for (let before = ''; ;) {
      const now = this.#sizes();
      if (now === before) break;
      before = now;
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
    await this.#data.close();
  }

  // As the engines recorded it themselves.
  starts(): string[] {
    const path = join(this.root, 'starts.txt');
    return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
  }

  #sizes(): string {
    const runs = join(this.root, 'data', 'runs');
    if (!existsSync(runs)) return 'none';
    return readdirSync(runs, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.log'))
      .map((name) => `${name} ${statSync(join(runs, name)).size}`)
      .join();
  }

  #mortal(store: Store, life: Life): Store {
    const die = (): Promise<never> => {
      life.end();
      return NEVER;
    };
    const mortal = <T extends object>(part: T): T =>
      new Proxy(part, {
        get: (target, name) => {
          const member = Reflect.get(target, name, target) as unknown;
          if (name === 'onCommitted' || name === 'onMissed') return (member as () => unknown).bind(target);
          if (name === 'summaries') return mortal(member as object);
          if (typeof member !== 'function') return member;
          return async (...args: unknown[]) => {
            if (life.isOver) return NEVER;
            const bomb = this.#bomb && { ...this.#bomb, calls: this.#bomb.calls - 1 };
            this.#bomb = bomb;
            if (bomb?.calls === 0 && bomb.moment === 'before') return die();
            const answer = await (member as (...parameters: unknown[]) => Promise<unknown>).apply(target, args);
            return bomb?.calls === 0 ? die() : answer;
          };
        },
      });
    return mortal(store);
  }
}

// Its pending timers die with it.
function mortalTimers(timers: Timers, life: Life): Timers {
  return { set: (ms, fire) => timers.set(ms, () => life.isOver || fire()) };
}

function beginLife(): Life {
  const over = new AbortController();
  const death = new Promise<never>((_resolve, reject) =>
    over.signal.addEventListener('abort', () => reject(new Dead('died'))),
  );
  death.catch(() => {});
  return {
    get isOver() {
      return over.signal.aborted;
    },
    death,
    end: () => over.abort(),
  };
}

function killed(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    // It has just exited.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
