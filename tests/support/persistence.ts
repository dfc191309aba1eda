// Clients that retry: unanswered requests are repeated on another server or the same one, and streams resume.
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import { createClient, type ParleyClient } from '../../src/client/client.js';
import { ParleyError } from '../../src/client/parley-error.js';

// A server that does not respond for so long is abandoned.
const PATIENCE_MS = 8000;

export abstract class Persistence {
  readonly #token: string;

  constructor(token: string) {
    this.#token = token;
  }

  // The next server to call.
  abstract get url(): string;

  // Repeated on another server until one responds.
  async somewhere<T>(ask: (client: ParleyClient) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask(createClient({ url: this.url, token: this.#token, wait: async () => {}, fetch: impatient }));
      } catch (error) {
        if (!(error instanceof ParleyError && error.passing)) throw error;
        await pause(100);
      }
    }
  }

  // All events of a run, from one server after the other, each from the position at which the previous one was lost.
  // Returns the last seq.
  async watch(runId: string): Promise<number> {
    let seq = 0;
    for (;;) {
      const leave = new AbortController();
      const silence = setTimeout(() => leave.abort(), 60_000);
      try {
        for await (const event of createClient({ url: this.url, token: this.#token }).events(runId, {
          cursor: seq,
          signal: leave.signal,
          onReconnect: () => leave.abort(),
        })) {
          expect(event.seq).toBe(seq + 1);
          ({ seq } = event);
          silence.refresh();
        }
        if (!leave.signal.aborted) return seq;
      } catch (error) {
        if (!(error instanceof ParleyError && error.passing)) throw error;
      } finally {
        clearTimeout(silence);
      }
      await pause(50);
    }
  }
}

const impatient: typeof fetch = (input, init) =>
  fetch(input, {
    ...init,
    signal: AbortSignal.any([AbortSignal.timeout(PATIENCE_MS), ...(init?.signal ? [init.signal] : [])]),
  });
