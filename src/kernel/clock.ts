// Time is an argument: code that needs the time takes a Clock.

export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

export function toTimestamp(ms: number): string {
  return new Date(ms).toISOString();
}
