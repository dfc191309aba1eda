// Holds a stream only while the page is visible and reopens it when the page is shown again: a browser has six
// connections for all its tabs, and a stream occupies one of them.
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
    const onVisibility = (): void => {
      clearTimeout(timer);
      if (document.visibilityState === 'hidden') timer = window.setTimeout(end, LINGER_MS);
    };
    document.addEventListener('visibilitychange', onVisibility);
    onVisibility();
    try {
      yield* stream(stop.signal);
      // The stream ended by itself.
      if (!stop.signal.aborted) return;
    } finally {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onVisibility);
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
