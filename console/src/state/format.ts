// Times and numbers as short texts.
import { t } from '../language/language.js';

const UNITS: readonly (readonly [number, string])[] = [
  [86_400_000, t.units.days],
  [3_600_000, t.units.hours],
  [60_000, t.units.minutes],
  [1000, t.units.seconds],
];

// 3 d, 2 h, 5 min, 12 s; less than a second is "now".
export function formatAge(ms: number): string {
  const unit = UNITS.find(([size]) => ms >= size);
  return unit ? `${Math.floor(ms / unit[0])} ${unit[1]}` : t.time.now;
}

export function formatAgo(ms: number): string {
  return ms < 1000 ? t.time.justNow : t.time.ago(formatAge(ms));
}

export function formatDuration(ms: number): string {
  const { hours: h, minutes: min, seconds: s, milliseconds } = t.units;
  if (ms < 1000) return `${Math.round(ms)} ${milliseconds}`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} ${s}`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60
    ? `${minutes} ${min} ${Math.round((ms % 60_000) / 1000)} ${s}`
    : `${Math.floor(minutes / 60)} ${h} ${minutes % 60} ${min}`;
}

export function formatTime(iso: string): string {
  return new Date(iso).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
}

export function formatCount(value: number): string {
  return value.toLocaleString();
}

export function formatBytes(bytes: number): string {
  const unit = (
    [
      [1e9, 'GB'],
      [1e6, 'MB'],
      [1e3, 'kB'],
    ] as const
  ).find(([size]) => bytes >= size);
  return unit ? `${(bytes / unit[0]).toFixed(1)} ${unit[1]}` : `${bytes} B`;
}

export function shortId(id: string): string {
  return id.length > 14 ? `${id.slice(0, 4)}…${id.slice(-6)}` : id;
}
