// Asks until there is an answer: while the server is away it is asked again when it is back. What it refuses is an
// answer, too.
import { ParleyError } from '../../../src/client/index.js';
import { connection } from './server.js';

const AGAIN_MS = 5000;

// Resolves with null when it is not wanted any more.
export async function persist<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T | null> {
  while (!signal.aborted) {
    try {
      const answer = await ask();
      return signal.aborted ? null : answer;
    } catch (error) {
      if (!(error instanceof ParleyError && error.passing)) throw error;
    }
    await backOrLater(signal);
  }
  return null;
}

function backOrLater(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let wasLost = connection.value.state === 'lost';
    const done = (): void => {
      clearTimeout(timer);
      stop();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, AGAIN_MS);
    const stop = connection.subscribe(({ state }) => {
      if (state === 'lost') wasLost = true;
      else if (state === 'open' && wasLost) queueMicrotask(done);
    });
    signal.addEventListener('abort', done);
  });
}
