// Time is an argument: whoever needs it is given a Clock.

export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

export function toTimestamp(ms: number): string {
  return new Date(ms).toISOString();
}
