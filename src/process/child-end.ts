// How a child process ended, and the digests of its output.
import type { StreamName } from '../rasp/event.js';
import type { Exit } from '../run/judge-completion.js';

export type EndReason =
  | 'canceled'
  | 'turn_timeout'
  | 'idle_timeout'
  | 'tool_timeout'
  | 'runaway'
  | 'other_session'
  | 'shutdown';

export interface ChildEnd {
  readonly exit: Exit;
  readonly endedByUs: EndReason | null;
  readonly streams: Record<StreamName, { readonly bytes: number; readonly sha256: string }>;
}
