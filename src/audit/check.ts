// One check of a stored run. A check handles one event at a time and reports at the end, so it keeps no events.
import type { Message } from '../kernel/message.js';
import type { RaspEvent } from '../rasp/event.js';
import type { RunRecord } from '../store/store.js';

// A check as programs get it.
export interface Check {
  readonly name: string;
  readonly ok: boolean;
  // A figure if the check passed, otherwise the problem.
  readonly finding: string;
}

// A check as it was made. The text of its message is the finding.
export interface MadeCheck extends Check {
  readonly message: Message;
}

export interface EventCheck {
  // Events come in order. May throw for an event that does not fit the RASP schema.
  event(event: RaspEvent): void;
  // Called when all events were read.
  finish(run: RunRecord): MadeCheck | Promise<MadeCheck>;
}

export function passed(name: string, message: Message): MadeCheck {
  return { name, ok: true, finding: message.text, message };
}

export function failed(name: string, message: Message): MadeCheck {
  return { name, ok: false, finding: message.text, message };
}

export function viewCheck({ name, ok, finding }: Check): Check {
  return { name, ok, finding };
}
