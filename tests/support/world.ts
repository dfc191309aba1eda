// Three hosts that are killed, stopped and disconnected at random, seeded.
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import { TOKEN, type Hosts } from './hosts.js';
import { Persistence } from './persistence.js';
import { openPostgresProxy, type PostgresProxy } from './postgres-proxy.js';
import type { seededRandom } from './seeded-random.js';
import type { ServerProcess } from './served-process.js';

const NAMES = ['a', 'b', 'c'];
type Random = ReturnType<typeof seededRandom>;

interface Machine {
  server: ServerProcess;
  readonly proxy: PostgresProxy;
  isWell: boolean;
}

export class World extends Persistence {
  readonly #hosts: Hosts;
  readonly #leaseMs: number;
  readonly #random: Random;
  readonly #machines = new Map<string, Machine>();
  readonly deeds: string[] = [];
  #isOver = false;
  #turn = 0;

  constructor(hosts: Hosts, leaseSec: number, random: Random) {
    super(TOKEN);
    this.#hosts = hosts;
    this.#leaseMs = leaseSec * 1000;
    this.#random = random;
  }

  async begin(): Promise<void> {
    await Promise.all(
      NAMES.map(async (name) => {
        const proxy = await openPostgresProxy(this.#hosts.database.url);
        this.#machines.set(name, { server: await this.#hosts.start(name, { url: proxy.url }), proxy, isWell: true });
      }),
    );
  }

  // A host that responds, as far as is known; a different one each time.
  get url(): string {
    const all = [...this.#machines.values()];
    const well = all.filter(({ isWell }) => isWell);
    const from = well.length > 0 ? well : all;
    this.#turn += 1;
    const machine = from[this.#turn % from.length];
    if (!machine) throw new Error('the world has not begun');
    return machine.server.url;
  }

  // Runs until enough is done, or it is healed.
  async rage(most: number): Promise<void> {
    while (!this.#isOver && this.deeds.length < most) {
      await pause(500 + this.#random(1500));
      const well = [...this.#machines].filter(([, { isWell }]) => isWell);
      // One host stays.
      if (well.length < 2 || this.#isOver) continue;
      const [name, machine] = this.#pick(well);
      machine.isWell = false;
      void this.#hurt(name, machine).finally(() => (machine.isWell = true));
    }
  }

  async #hurt(name: string, machine: Machine): Promise<void> {
    const deed = this.#pick(['kill', 'stop', 'cut', 'blink'] as const);
    this.deeds.push(`${deed} ${name}`);
    if (deed === 'kill') {
      machine.server.child.kill('SIGKILL');
      await machine.server.ended;
      await pause(this.#random(2000));
      machine.server = await this.#hosts.start(name, { url: machine.proxy.url });
    } else if (deed === 'stop') {
      machine.server.child.kill('SIGSTOP');
      await pause(this.#leaseMs + 500 + this.#random(2000));
      machine.server.child.kill('SIGCONT');
    } else {
      machine.proxy.shut();
      await pause(deed === 'blink' ? this.#random(500) : this.#leaseMs + 1000 + this.#random(3000));
      machine.proxy.open();
    }
  }

  async heal(): Promise<void> {
    this.#isOver = true;
    await expect.poll(() => [...this.#machines.values()].every(({ isWell }) => isWell), { timeout: 60_000 }).toBe(true);
  }

  async end(): Promise<void> {
    for (const { proxy } of this.#machines.values()) await proxy.close();
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#random(from.length)] as T;
  }
}
