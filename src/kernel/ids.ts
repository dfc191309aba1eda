// Ids are an argument, like time: a random source for production, a counting source for reproducible output.
import { monotonicFactory } from 'ulid';
import type { Clock } from './clock.js';

type RunId = `run_${string}`;
export type InteractionId = `int_${string}`;
type DeliveryId = `dlv_${string}`;

export interface Ids {
  run(): RunId;
  interaction(): InteractionId;
  delivery(): DeliveryId;
}

export function createIds(clock: Clock): Ids {
  const ulid = monotonicFactory();
  return {
    run: () => `run_${ulid(clock.now())}`,
    interaction: () => `int_${ulid(clock.now())}`,
    delivery: () => `dlv_${ulid(clock.now())}`,
  };
}

export function createCountingIds(): Ids {
  let count = 0;
  const next = () => String((count += 1)).padStart(26, '0');
  return { run: () => `run_${next()}`, interaction: () => `int_${next()}`, delivery: () => `dlv_${next()}` };
}

// Validates a run id that comes from outside: it becomes part of file paths.
export function isRunId(text: string): boolean {
  return /^\w{1,64}$/.test(text);
}
