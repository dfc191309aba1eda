// One at a time where a login is to be renewed: an engine renews an expired one when it starts, with a token that
// counts once, and knows nothing of its like in other homes. The first goes ahead; the others follow when the login is
// good again.
import type { Engine, User } from '../engines/engine.js';
import { OWN_FILE, readTextSync } from '../files/read-file.js';
import { realPathOf } from '../files/real-path.js';
import type { Clock } from '../kernel/clock.js';
import type { Timers } from '../process/timers.js';

const LOOK_MS = 100;
// A renewal takes a second or two. Whoever waited so long tries for itself.
const PATIENCE_MS = 10_000;
// Codex renews five minutes before the end.
const AHEAD_MS = 330_000;

export class LoginRenewals {
  readonly #clock: Clock;
  readonly #timers: Timers;
  // By the file of the login: resolves when whoever renews it is done, or has had its time.
  readonly #renewing = new Map<string, Promise<void>>();

  constructor(clock: Clock, timers: Timers) {
    this.#clock = clock;
    this.#timers = timers;
  }

  // Resolves when an engine may start; what it answers is to be called when the engine has ended.
  async admit({ home }: Engine, user: User): Promise<() => void> {
    const { loginExpiry } = home;
    // The file itself: what a login is for several homes.
    const path =
      loginExpiry &&
      home
        .logins(user)
        .map(({ from }) => realPathOf(from))
        .find((found) => found !== null);
    if (!loginExpiry || path === undefined) return () => {};
    const isExpired = (): boolean =>
      (loginExpiry(readOr(path, '')) ?? Number.MAX_SAFE_INTEGER) <= this.#clock.now() + AHEAD_MS;
    for (let renewal = this.#renewing.get(path); renewal && isExpired(); renewal = this.#renewing.get(path))
      await renewal;
    if (!isExpired()) return () => {};
    let over = false;
    const renewed = this.#until(() => over || !isExpired()).then(() => void this.#renewing.delete(path));
    this.#renewing.set(path, renewed);
    return () => {
      over = true;
    };
  }

  #until(reached: () => boolean): Promise<void> {
    const begun = this.#clock.now();
    return new Promise((resolve) => {
      const look = (): void => {
        if (reached() || this.#clock.now() - begun >= PATIENCE_MS) resolve();
        else this.#timers.set(LOOK_MS, look);
      };
      look();
    });
  }
}

function readOr(path: string, otherwise: string): string {
  try {
    return readTextSync(path, OWN_FILE) ?? otherwise;
  } catch {
    return otherwise;
  }
}
