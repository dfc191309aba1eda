// Repeats a request until the server responds. While the server is unreachable, it retries once the server is back. A
// refusal counts as a response.
import { ParleyError } from '../../../src/client/index.js';
import { connection } from './server.js';

const RETRY_MS = 5000;

// Resolves to null when it is aborted.
export async function persist<T>(send: () => Promise<T>, signal: AbortSignal): Promise<T | null> {
  while (!signal.aborted) {
    try {
      const response = await send();
      return signal.aborted ? null : response;
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
    const timer = setTimeout(done, RETRY_MS);
    const stop = connection.subscribe(({ state }) => {
      if (state === 'lost') wasLost = true;
      else if (state === 'open' && wasLost) queueMicrotask(done);
    });
    signal.addEventListener('abort', done);
  });
}
