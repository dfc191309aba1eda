// Remembers logins that engines refused. A refusal applies for an hour, as long as the login files and the keys in the
// environment do not change. Only a digest of a login is stored.
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import type { Engine, User } from '../../engines/engine.js';
import type { Clock } from '../../kernel/clock.js';
import type { KnowledgeFile } from '../knowledge-file.js';

// A login may be fixed where Parley cannot see it (a key chain, the account itself).
const APPLIES_MS = 60 * 60 * 1000;
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

  // Records whether the engine accepted the login in a turn. Models may belong to different providers, each with its
  // own login.
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

  // Returns when the engine refused the current login; null: it did not, or too long ago.
  refusedAt(engine: Engine, model: string | undefined): number | null {
    const refusal = this.#refusals.get(keyOf(engine, model));
    if (!refusal || Math.abs(this.#clock.now() - refusal.at) > APPLIES_MS) return null;
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
