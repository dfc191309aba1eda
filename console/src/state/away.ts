// Whether the page has been hidden for more than a moment.
import { signal } from '@preact/signals';

const LINGER_MS = 5000;

export const isAway = signal(document.visibilityState === 'hidden');

let timer = 0;
document.addEventListener('visibilitychange', () => {
  clearTimeout(timer);
  if (document.visibilityState === 'visible') isAway.value = false;
  else timer = window.setTimeout(() => (isAway.value = true), LINGER_MS);
});
