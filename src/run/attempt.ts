// How turns are numbered: the first is 1; each accepted answer starts the next; an auto run has only one.

export type ExecutionMode = 'auto' | 'interactive';

export const FIRST_ATTEMPT = 1;
export const DEFAULT_MAX_ATTEMPT = 100;

export function nextAttempt(mode: ExecutionMode, attempt: number): number {
  return mode === 'auto' ? FIRST_ATTEMPT : attempt + 1;
}
