// Serializes starts of engines that renew a login. An engine renews an expired login when it starts, with a token that
// is valid once, and does not know about engines in other homes. The first engine starts; the others wait until the
// login is valid again.
import type { Engine, User } from '../../engines/engine.js';
import { OWN_FILE, readTextSync } from '../../files/read-file.js';
import { realPathOf } from '../../files/real-path.js';
import type { Clock } from '../../kernel/clock.js';
import type { Timers } from '../../process/timers.js';

const POLL_MS = 100;
// A renewal takes one or two seconds. After this time a waiting engine starts anyway.
const PATIENCE_MS = 10_000;
// Codex renews a login five minutes before it expires.
const AHEAD_MS = 330_000;

export class LoginRenewals {
  readonly #clock: Clock;
  readonly #timers: Timers;
  // By login file: resolves when the renewal has finished or has timed out.
  readonly #renewing = new Map<string, Promise<void>>();

  constructor(clock: Clock, timers: Timers) {
    this.#clock = clock;
    this.#timers = timers;
  }

  // Resolves when an engine may start. Call the returned function when the engine has exited.
  async admit({ home }: Engine, user: User): Promise<() => void> {
    const { loginExpiry } = home;
    // The target of links, because several homes link to one login.
    const path =
      loginExpiry &&
      home
        .logins(user)
        .map(({ from }) => realPathOf(from))
        .find((realPath) => realPath !== null);
    if (!loginExpiry || path === undefined) return () => {};
    const isExpired = (): boolean =>
      (loginExpiry(readOr(path, '')) ?? Number.MAX_SAFE_INTEGER) <= this.#clock.now() + AHEAD_MS;
    for (let renewal = this.#renewing.get(path); renewal && isExpired(); renewal = this.#renewing.get(path))
      await renewal;
    if (!isExpired()) return () => {};
    let hasExited = false;
    const renewed = this.#until(() => hasExited || !isExpired()).then(() => void this.#renewing.delete(path));
    this.#renewing.set(path, renewed);
    return () => {
      hasExited = true;
    };
  }

  #until(reached: () => boolean): Promise<void> {
    const startedAt = this.#clock.now();
    return new Promise((resolve) => {
      const poll = (): void => {
        if (reached() || this.#clock.now() - startedAt >= PATIENCE_MS) resolve();
        else this.#timers.set(POLL_MS, poll);
      };
      poll();
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
