// Logins that the engines themselves refused. A refusal is believed for a while, as long as nothing about the login has
// changed: neither the login files nor the keys in the environment. Of a login only a digest is kept.
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import type { Engine, User } from '../engines/engine.js';
import type { Clock } from '../kernel/clock.js';
import type { KnowledgeFile } from './knowledge-file.js';

// A login may be repaired where Parley cannot see it (a key chain, the account itself).
const BELIEVED_MS = 60 * 60 * 1000;
const SECTION = 'refused_logins';

interface Refusal {
  readonly fingerprint: string;
  readonly at: number;
}

export class LoginRefusals {
  readonly #user: User;
  readonly #clock: Clock;
  readonly #file: KnowledgeFile;
  readonly #refusals = new Map<string, Refusal>();

  constructor(user: User, clock: Clock, file: KnowledgeFile) {
    this.#user = user;
    this.#clock = clock;
    this.#file = file;
    for (const [key, { fingerprint, at }] of file.read(SECTION)) {
      if (typeof fingerprint === 'string' && typeof at === 'number') this.#refusals.set(key, { fingerprint, at });
    }
  }

  // What the engine made of the login in a turn. Models may belong to different providers, with a login each.
  note(engine: Engine, model: string | undefined, isAccepted: boolean): void {
    const key = keyOf(engine, model);
    if (isAccepted) {
      if (this.#refusals.delete(key)) this.#file.set(SECTION, key, null);
      return;
    }
    const refusal = { fingerprint: this.#fingerprint(engine), at: this.#clock.now() };
    this.#refusals.set(key, refusal);
    this.#file.set(SECTION, key, { ...refusal });
  }

  // When the engine refused the login as it still is; null: it did not, or not lately.
  refusedAt(engine: Engine, model: string | undefined): number | null {
    const refusal = this.#refusals.get(keyOf(engine, model));
    if (!refusal || Math.abs(this.#clock.now() - refusal.at) > BELIEVED_MS) return null;
    return refusal.fingerprint === this.#fingerprint(engine) ? refusal.at : null;
  }

  #fingerprint({ home: { logins, keys, keyInstead } }: Engine): string {
    const { env } = this.#user;
    const files = logins(this.#user).map(({ from }) => {
      const file = statSync(from, { throwIfNoEntry: false });
      return [from, file?.size ?? null, file?.mtimeMs ?? null, file?.ino ?? null];
    });
    const names = Object.keys(env).filter(
      (name) => name === keyInstead?.of || keys.some((pattern) => pattern.test(name)),
    );
    return createHash('sha256')
      .update(JSON.stringify([files, names.toSorted().map((name) => [name, env[name]])]))
      .digest('hex');
  }
}

function keyOf({ name }: Engine, model: string | undefined): string {
  return `${name}|${model ?? ''}`;
}
