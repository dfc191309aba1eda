// One built server and its engines, both killed and stopped at random, seeded; the server is started again on the same
// port.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createSite, enginesOf, untilEngine, type Site } from './command.js';
import { readTrace, type TracedProcess } from './engine-trace.js';
import { Persistence } from './persistence.js';
import { startServer, type ServerProcess } from './served-process.js';
import { steadyPort } from './steady-port.js';
import type { Chance } from './torture.js';

const TOKEN = 'prl_9Hz3Kp7Tw1Xc5Mb8Qf2Vn6Lr4Gj0Sd';

const TRACE = `--import=${new URL('trace-engine.mjs', import.meta.url).href}`;
export const DEEDS = [
  'servers killed',
  'servers stopped',
  'servers ended',
  'engines killed',
  'engines stopped',
  'engines stopped and servers killed',
] as const;
export type Deed = (typeof DEEDS)[number];

export class ShakenServer extends Persistence {
  readonly site: Site;
  readonly #by: Chance;
  readonly #onDeed: (deed: Deed) => void;
  readonly #onIdle: () => Promise<void>;
  readonly #trace: string;
  #server!: ServerProcess;
  #isOver = false;

  // `onIdle` starts a run that keeps running: no engine runs that could be killed or stopped.
  constructor(by: Chance, onDeed: (deed: Deed) => void, onIdle: () => Promise<void>, config: object = {}) {
    super(TOKEN);
    this.#by = by;
    this.#onDeed = onDeed;
    this.#onIdle = onIdle;
    const site = createSite();
    this.#trace = join(site.root, 'engines.jsonl');
    this.site = { ...site, env: { ...site.env, PARLEY_TOKEN: TOKEN, NODE_OPTIONS: TRACE, ENGINE_TRACE: this.#trace } };
    mkdirSync(site.data, { mode: 0o700 });
    writeFileSync(
      join(site.data, 'config.json'),
      JSON.stringify({
        slots: 3,
        shutdown_grace_sec: 0.1,
        recovery: { queued: 'requeue' },
        env_passthrough: ['NODE_OPTIONS', 'ENGINE_TRACE'],
        ...config,
      }),
    );
  }

  get url(): string {
    return this.#server.url;
  }

  get server(): ServerProcess {
    return this.#server;
  }

  async begin(port?: number): Promise<void> {
    this.#server = await startServer(this.site, ['--port', String(port ?? (await steadyPort()))]);
  }

  traced = (runId?: string): TracedProcess[] =>
    readTrace(this.#trace).filter((each) => runId === undefined || each.runId === runId);

  // Runs until enough is done or it is aborted; each action is done at least once. The seed decides the order, round
  // after round.
  async rage(most: number): Promise<void> {
    let round: Deed[] = [];
    for (let done = 0; done < DEEDS.length || (done < most && !this.#isOver); done += 1) {
      await pause(200 + this.#by.below(1300));
      if (round.length === 0) round = [...DEEDS];
      const deed = this.#by.pick(round);
      round = round.filter((each) => each !== deed);
      await this.#do(deed);
      this.#onDeed(deed);
    }
  }

  leave(): void {
    this.#isOver = true;
  }

  async #do(deed: Deed): Promise<void> {
    switch (deed) {
      case 'servers killed':
        return this.#restart('SIGKILL');
      case 'servers ended':
        return this.#restart('SIGTERM');
      case 'servers stopped':
        this.#server.child.kill('SIGSTOP');
        await pause(this.#by.below(2500));
        this.#server.child.kill('SIGCONT');
        return;
      case 'engines killed':
        await this.#signal('SIGKILL');
        return;
      case 'engines stopped': {
        const pid = await this.#signal('SIGSTOP');
        await pause(this.#by.below(1500));
        signal(pid, 'SIGCONT');
        return;
      }
      case 'engines stopped and servers killed':
        // It is not notified when its server ends or when it should end itself.
        await this.#signal('SIGSTOP');
        return this.#restart('SIGKILL');
      default:
        return deed satisfies never;
    }
  }

  async #restart(by: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const { child, ended, port } = this.#server;
    child.kill(by);
    await ended;
    await pause(this.#by.below(500));
    await this.begin(port);
  }

  // Returns which engine it was.
  async #signal(name: 'SIGKILL' | 'SIGSTOP'): Promise<number> {
    for (;;) {
      const engines = await enginesOf(this.site);
      if (engines.length === 0) {
        await this.#onIdle();
        await untilEngine(this.site);
        continue;
      }
      const { pid } = this.#by.pick(engines);
      if (signal(pid, name)) return pid;
    }
  }
}

function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch (error) {
    // It has just exited.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    return false;
  }
}
