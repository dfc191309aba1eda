// Notices changes of config.json: compares the state of the file (inode, size, times) every second, without reading it.
// A change is reported when the file was the same for one more second, so a file that is being written is not read
// half. See docs/internals/decisions/0015-settings-are-polled.md.
import { statSync, type BigIntStats } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Timers } from '../kernel/timers.js';
import { configPath } from './read-settings.js';

export const POLL_MS = 1000;

// Identifies the state of the file. Take it before the file is read, so a change meanwhile is noticed.
export function stampOf(dataDir: string): string {
  try {
    return toStamp(statSync(configPath(dataDir), { bigint: true }));
  } catch (error) {
    return codeOf(error);
  }
}

export interface SettingsWatch {
  // Resolves when no check is under way.
  close(): Promise<void>;
}

export interface WatchOptions {
  readonly timers: Timers;
  // The state of the file when it was last read.
  readonly stamp: string;
  // The file has changed and is complete.
  readonly onChange: () => Promise<void>;
}

export function watchSettings(dataDir: string, { timers, stamp, onChange }: WatchOptions): SettingsWatch {
  let known = stamp;
  let last = stamp;
  let isClosed = false;
  let cancel: (() => void) | null = null;
  let working = Promise.resolve();
  const look = async (): Promise<void> => {
    const now = await stat(configPath(dataDir), { bigint: true }).then(toStamp, codeOf);
    const isComplete = now === last;
    last = now;
    if (isClosed || now === known || !isComplete) return;
    known = now;
    await onChange();
  };
  const wait = (): void => {
    cancel = timers.set(POLL_MS, () => {
      working = look().then(() => {
        if (!isClosed) wait();
      });
    });
  };
  wait();
  return {
    close: async () => {
      isClosed = true;
      cancel?.();
      await working;
    },
  };
}

function toStamp({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
}

// A missing file is valid: all settings then have their defaults.
function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code);
}
