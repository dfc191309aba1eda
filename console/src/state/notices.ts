// Announces new questions: a number in the title and, if the user wants it, a browser notification.
import { effect, signal } from '@preact/signals';
import { t } from '../language/language.js';
import { count, onAsked } from './inbox.js';
import { canNotify, NOTIFY_KEY, notifies } from './notify-setting.js';
import { go } from './router.js';
import { pageName } from './title.js';

export { canNotify, notifies };

// Whether the browser blocks notifications.
export const isBlocked = signal(canNotify() && Notification.permission === 'denied');

// Read aloud by screen readers.
export const announced = signal('');

export async function toggleNotices(): Promise<void> {
  const on = !notifies.value && (await Notification.requestPermission()) === 'granted';
  try {
    localStorage.setItem(NOTIFY_KEY, on ? 'on' : 'off');
  } catch {
    // A browser without storage: the setting lasts until the page is closed.
  }
  notifies.value = on;
  isBlocked.value = Notification.permission === 'denied';
}

export function startNotices(): void {
  effect(() => {
    document.title = t.pages.title(pageName.value, count.value);
  });
  onAsked((item) => {
    announced.value = t.notices.announcement(item.engine, count.value);
    if (!notifies.value || document.visibilityState === 'visible') return;
    const prompt = typeof item.question['prompt'] === 'string' ? item.question['prompt'] : '';
    try {
      const notice = new Notification(t.notices.asks(item.engine), {
        body: prompt.slice(0, 200),
        tag: item.interaction_id,
      });
      notice.addEventListener('click', () => {
        window.focus();
        go('/');
      });
    } catch {
      // Some mobile browsers define Notification but cannot create one.
      notifies.value = false;
    }
  });
}
