// Combines several changes into one statement: each part is a common table expression, and the last one notifies other
// hosts. Equal parts give an equal text, so the statement is prepared once per combination.
import { createHash } from 'node:crypto';
import type { Statement } from './database.js';

// Commits that change rows: every host gets them.
export const CHANNEL = 'parley_commits';
// Commits that only add events to a running run: a host gets them if it has a reader of the run. Each run has one of
// this many channels.
const EVENT_CHANNELS = 256;
// Notifies hosts that sessions or tokens have changed.
export const ACCESS_CHANNEL = 'parley_access';

export function eventChannel(runId: string): string {
  return `parley_events_${createHash('sha256').update(runId).digest().readUInt16BE() % EVENT_CHANNELS}`;
}

export type Param = (value: unknown, type: string) => string;

export class Composition {
  readonly #parts: string[] = [];
  readonly #values: unknown[] = [];
  #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  // The sign represents the part in the name of the statement.
  add(sign: string, write: (param: Param) => string): this {
    this.#name += sign;
    this.#parts.push(
      `part_${this.#parts.length} AS (${write((value, type) => `$${this.#values.push(value)}::${type}`)})`,
    );
    return this;
  }

  notifying(hint: string): Statement {
    const text = `WITH ${this.#parts.join(',\n')} SELECT pg_notify('${CHANNEL}', $${this.#values.length + 1})`;
    return { name: this.#name, text, values: [...this.#values, hint] };
  }
}
