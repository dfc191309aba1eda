// Whether the user wants notifications and this browser can show them.
import { signal } from '@preact/signals';

export const NOTIFY_KEY = 'parley.notify';

export function canNotify(): boolean {
  return 'Notification' in window;
}

export const notifies = signal(canNotify() && Notification.permission === 'granted' && wasOn());

function wasOn(): boolean {
  try {
    return localStorage.getItem(NOTIFY_KEY) === 'on';
  } catch {
    return false;
  }
}
