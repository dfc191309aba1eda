// The evidence for one event: its stored envelope, the diagnostics for the same bytes, and those bytes with their
// context.
import type { RaspEvent } from '../../../src/client/index.js';
import { client } from './server.js';
import { nameBytes } from '../../../src/kernel/visible-bytes.js';

export interface Evidence {
  readonly event: RaspEvent;
  // For the same bytes.
  readonly diagnostics: readonly RaspEvent[];
  readonly bytes: LogPart | null;
}

export interface LogPart {
  readonly before: string;
  readonly exact: string;
  readonly after: string;
  // How many of the exact bytes are not shown.
  readonly left: number;
}

const AROUND = 3;
const CONTEXT_BYTES = 400;
const SHOWN_BYTES = 64 * 1024;

export async function loadEvidence(runId: string, seq: number): Promise<Evidence | null> {
  const range = `from_seq=${Math.max(1, seq - AROUND)}&to_seq=${seq + AROUND}`;
  const path = `/v1/runs/${encodeURIComponent(runId)}/rasp/history?${range}`;
  const { events } = (await (await client.request('GET', path)).json()) as { events: readonly RaspEvent[] };
  const event = events.find((each) => each.seq === seq);
  if (!event) return null;
  const ref = event.raw_ref;
  const diagnostics =
    ref === null
      ? []
      : events.filter((each) => each.seq !== seq && each.event.category === 'diagnostic' && isSame(each.raw_ref, ref));
  return { event, diagnostics, bytes: ref && (await loadPart(runId, ref)) };
}

function isSame(a: RaspEvent['raw_ref'], b: NonNullable<RaspEvent['raw_ref']>): boolean {
  return (
    a !== null &&
    a.attempt_number === b.attempt_number &&
    a.stream === b.stream &&
    a.byte_from === b.byte_from &&
    a.byte_to === b.byte_to
  );
}

async function loadPart(
  runId: string,
  { attempt_number: attempt, stream, byte_from: from, byte_to: to }: NonNullable<RaspEvent['raw_ref']>,
): Promise<LogPart> {
  const begin = Math.max(0, from - CONTEXT_BYTES);
  const shownTo = Math.min(to, from + SHOWN_BYTES);
  const isWhole = shownTo === to;
  const bytes = await client.logs(runId, {
    attempt,
    stream,
    byte_from: begin,
    byte_to: isWhole ? to + CONTEXT_BYTES : shownTo,
  });
  const before = bytes.subarray(0, from - begin);
  return {
    before: nameBytes(before.subarray(begin === 0 ? 0 : firstCharacterAt(before))),
    exact: nameBytes(bytes.subarray(from - begin, shownTo - begin)),
    after: isWhole ? nameBytes(bytes.subarray(to - begin)) : '',
    left: to - shownTo,
  };
}

// The position of the first complete character.
function firstCharacterAt(bytes: Uint8Array): number {
  let at = 0;
  while (at < 3 && ((bytes[at] ?? 0) & 0xc0) === 0x80) at += 1;
  return at;
}
