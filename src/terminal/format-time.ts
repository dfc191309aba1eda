// Formats durations, ages, sizes and counts for people.
import { terminalTexts } from './texts.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

// How long something took: "850 ms", "1.2 s", "12 s", "2 m 5 s", "3 h 4 m".
export function formatDuration(ms: number): string {
  const elapsed = Math.max(0, ms);
  const { units } = terminalTexts();
  if (elapsed < SECOND - 0.5) return `${Math.round(elapsed)} ${units.ms}`;
  if (elapsed < 9.95 * SECOND) return `${(elapsed / SECOND).toFixed(1)} ${units.s}`;
  return inTwo(Math.round(elapsed / SECOND) * SECOND);
}

// How long ago something was: "12 s", "3 m", "2 h 5 m", "5 d".
export function formatAge(ms: number): string {
  const elapsed = Math.max(0, ms);
  const { units } = terminalTexts();
  if (elapsed < MINUTE) return `${Math.floor(elapsed / SECOND)} ${units.s}`;
  if (elapsed < HOUR) return `${Math.floor(elapsed / MINUTE)} ${units.m}`;
  if (elapsed < DAY) return inTwo(elapsed);
  return `${Math.floor(elapsed / DAY)} ${units.d}`;
}

function inTwo(ms: number): string {
  const { units } = terminalTexts();
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} ${units.s}`;
  if (ms < HOUR) return both(ms, [MINUTE, units.m], [SECOND, units.s]);
  if (ms < DAY) return both(ms, [HOUR, units.h], [MINUTE, units.m]);
  return both(ms, [DAY, units.d], [HOUR, units.h]);
}

type Unit = readonly [ms: number, name: string];

function both(ms: number, [largeMs, large]: Unit, [smallMs, small]: Unit): string {
  const rest = Math.floor((ms % largeMs) / smallMs);
  return `${Math.floor(ms / largeMs)} ${large}${rest > 0 ? ` ${rest} ${small}` : ''}`;
}

// "512 B", "3.4 MB".
export function formatSize(bytes: number): string {
  return bytes < 1000 ? `${bytes} B` : scaled(bytes, ['kB', 'MB', 'GB', 'TB'], ' ');
}

// "950", "1.2k", "3.4M".
export function formatCount(count: number): string {
  return count < 1000 ? String(count) : scaled(count, ['k', 'M', 'G'], '');
}

function scaled(value: number, units: readonly string[], space: string): string {
  let rest = value / 1000;
  let at = 0;
  // 999.95 would be rounded to 1000.0.
  while (rest >= 999.95 && at < units.length - 1) {
    rest /= 1000;
    at += 1;
  }
  return `${rest.toFixed(1)}${space}${units[at] ?? ''}`;
}
