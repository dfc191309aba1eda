// Tells of what begins to wait: a number in the title, and a notification of the browser if the person wants that.
import { effect, signal } from '@preact/signals';
import { count, onAsked } from './inbox.js';
import { go } from './router.js';

const KEY = 'parley.notify';

export const notifies = signal(canNotify() && Notification.permission === 'granted' && localStorage.getItem(KEY) === 'on');

export function canNotify(): boolean {
  return 'Notification' in window;
}

export async function toggleNotices(): Promise<void> {
  const on = !notifies.value && (await Notification.requestPermission()) === 'granted';
  localStorage.setItem(KEY, on ? 'on' : 'off');
  notifies.value = on;
}

export function startNotices(): void {
  effect(() => {
    document.title = count.value > 0 ? `(${count.value}) Parley` : 'Parley';
  });
  onAsked((item) => {
    if (!notifies.value || document.visibilityState === 'visible') return;
    const prompt = typeof item.question['prompt'] === 'string' ? item.question['prompt'] : '';
    const notice = new Notification(`${item.engine} asks`, { body: prompt.slice(0, 200), tag: item.interaction_id });
    notice.onclick = () => {
      window.focus();
      go('/');
    };
  });
}
