// One check of a stored run. A check handles one event at a time and reports at the end, so it keeps no events.
import type { RaspEvent } from '../rasp/event.js';
import type { RunRecord } from '../store/store.js';

export interface Check {
  readonly name: string;
  readonly ok: boolean;
  // A figure if the check passed, otherwise the problem.
  readonly finding: string;
}

export interface EventCheck {
  // Events come in order. May throw for an event that does not fit the RASP schema.
  event(event: RaspEvent): void;
  // Called when all events were read.
  finish(run: RunRecord): Check | Promise<Check>;
}

export function passed(name: string, finding: string): Check {
  return { name, ok: true, finding };
}

export function failed(name: string, finding: string): Check {
  return { name, ok: false, finding };
}
