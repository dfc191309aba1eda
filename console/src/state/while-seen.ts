// A stream that is held only while somebody looks at the page, and begins anew when they come back: a browser has six
// connections for all its tabs, and a stream takes one of them for good.
const LINGER_MS = 5000;

export async function* whileSeen<T>(
  stream: (signal: AbortSignal) => AsyncIterable<T>,
  outer?: AbortSignal,
): AsyncGenerator<T, void> {
  for (;;) {
    if (outer?.aborted) return;
    const stop = new AbortController();
    const end = (): void => stop.abort();
    outer?.addEventListener('abort', end);
    let timer = 0;
    const look = (): void => {
      clearTimeout(timer);
      if (document.visibilityState === 'hidden') timer = window.setTimeout(end, LINGER_MS);
    };
    document.addEventListener('visibilitychange', look);
    look();
    try {
      yield* stream(stop.signal);
      // It came to its own end.
      if (!stop.signal.aborted) return;
    } finally {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', look);
      outer?.removeEventListener('abort', end);
    }
    if (!outer?.aborted) await seen(outer);
  }
}

function seen(outer: AbortSignal | undefined): Promise<void> {
  if (document.visibilityState === 'visible') return Promise.resolve();
  return new Promise((resolve) => {
    const look = (): void => {
      if (document.visibilityState !== 'visible' && !outer?.aborted) return;
      document.removeEventListener('visibilitychange', look);
      outer?.removeEventListener('abort', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    outer?.addEventListener('abort', look);
  });
}
