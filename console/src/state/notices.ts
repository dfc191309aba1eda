// Tells of what begins to wait: a number in the title, and a notification of the browser if the person wants that.
import { effect, signal } from '@preact/signals';
import { count, onAsked } from './inbox.js';
import { canNotify, NOTIFY_KEY, notifies } from './notify-setting.js';
import { go } from './router.js';
import { pageName } from './title.js';

export { canNotify, notifies };

// The browser was told to show none.
export const isBlocked = signal(canNotify() && Notification.permission === 'denied');

// For those who hear the page.
export const announced = signal('');

export async function toggleNotices(): Promise<void> {
  const on = !notifies.value && (await Notification.requestPermission()) === 'granted';
  try {
    localStorage.setItem(NOTIFY_KEY, on ? 'on' : 'off');
  } catch {
    // A browser that keeps nothing: until the page is closed, then.
  }
  notifies.value = on;
  isBlocked.value = Notification.permission === 'denied';
}

export function startNotices(): void {
  effect(() => {
    document.title = `${count.value > 0 ? `(${count.value}) ` : ''}${pageName.value} · Parley`;
  });
  onAsked((item) => {
    announced.value = `${item.engine} asks something. ${count.value} ${count.value === 1 ? 'waits' : 'wait'} for you.`;
    if (!notifies.value || document.visibilityState === 'visible') return;
    const prompt = typeof item.question['prompt'] === 'string' ? item.question['prompt'] : '';
    try {
      const notice = new Notification(`${item.engine} asks`, { body: prompt.slice(0, 200), tag: item.interaction_id });
      notice.addEventListener('click', () => {
        window.focus();
        go('/');
      });
    } catch {
      // Some browsers of phones have the name and not the thing.
      notifies.value = false;
    }
  });
}
