// The time, for ages that are shown; once a second, and not while nobody looks.
import { signal } from '@preact/signals';

export const now = signal(Date.now());

setInterval(() => {
  if (document.visibilityState === 'visible') now.value = Date.now();
}, 1000);
document.addEventListener('visibilitychange', () => (now.value = Date.now()));
