// Feeds recorded output to the parser of one turn. Checks two promises each time: the ranges of the drafts account for
// every byte of both streams, and every draft makes a valid RASP event with the same content.
import { expect } from 'vitest';
import type { ParserCounts } from '../../src/engines/emitter.js';
import type { Engine } from '../../src/engines/engine.js';
import type { NativeRequest } from '../../src/engines/native-request.js';
import { createTurnParser, findEngine } from '../../src/engines/registry.js';
import type { ParserStart } from '../../src/engines/turn-parser.js';
import type { RaspDraft } from '../../src/rasp/draft.js';
import { RASP_VERSION, type RaspData, type RaspEvent, type RaspType, type StreamName } from '../../src/rasp/event.js';
import { explainRasp } from '../../src/rasp/validate.js';
import type { TurnEvidence } from '../../src/run/evidence.js';

export interface Output {
  readonly stdout?: string | Buffer;
  readonly stderr?: string | Buffer;
  // Cuts both streams into chunks of this size; without it each comes in one.
  readonly chunkBytes?: number;
}

export interface Parsed {
  readonly drafts: readonly RaspDraft[];
  readonly evidence: TurnEvidence;
  readonly counts: ParserCounts;
  readonly turnOver: boolean;
  readonly openRequests: readonly NativeRequest[];
  // How many bytes of each stream the ranges cover without a gap, from the start of the turn.
  readonly cover: Readonly<Record<StreamName, number>>;
}

export function parse(engine: string | Engine, output: Output, start: ParserStart = {}): Parsed {
  const rules = typeof engine === 'string' ? findEngine(engine) : engine;
  const parser = createTurnParser(rules, undefined, start);
  const { stdout: fromStdout, stderr: fromStderr } = start.at ?? { stdout: 0, stderr: 0 };
  const bytes = { stdout: Buffer.from(output.stdout ?? ''), stderr: Buffer.from(output.stderr ?? '') };
  const drafts: RaspDraft[] = [];
  for (const stream of ['stdout', 'stderr'] as const) {
    for (const chunk of cut(bytes[stream], output.chunkBytes)) drafts.push(...parser.push(stream, chunk));
  }
  drafts.push(...parser.finish());
  expectValid(rules.name, drafts);
  const cover = { stdout: coverOf(drafts, 'stdout', fromStdout), stderr: coverOf(drafts, 'stderr', fromStderr) };
  expect(cover).toEqual({ stdout: bytes.stdout.length, stderr: bytes.stderr.length });
  return {
    drafts,
    evidence: parser.evidence(),
    counts: parser.counts(),
    turnOver: parser.turnOver,
    openRequests: parser.openRequests,
    cover,
  };
}

function* cut(bytes: Buffer, size = Math.max(1, bytes.length)): Generator<Buffer> {
  // A copy each time, which exposes a parser that keeps a view of a chunk.
  for (let at = 0; at < bytes.length; at += size) yield Buffer.from(bytes.subarray(at, at + size));
}

// The stored event of a draft: its data is the content of its JSON text.
export function eventOf(draft: RaspDraft, seq: number, engine = 'codex', attempt = 1): RaspEvent {
  const { type, parser, confidence, sessionId, itemId, interactionId, range } = draft;
  return {
    protocol_version: RASP_VERSION,
    run_id: 'run_test',
    seq,
    ts: '2026-11-15T00:00:00.000Z',
    attempt_number: attempt,
    source: { engine, parser, confidence },
    event: { category: type.slice(0, type.indexOf('.')), type },
    data: JSON.parse([draft.json].flat().join('')) as RaspEvent['data'],
    correlation: {
      ...(sessionId === null ? {} : { session_id: sessionId }),
      ...(itemId === null ? {} : { item_id: itemId }),
      ...(interactionId === null ? {} : { interaction_id: interactionId }),
    },
    raw_ref: range && {
      attempt_number: attempt,
      stream: range.stream,
      byte_from: range.from,
      byte_to: range.to,
      encoding: 'utf-8',
    },
  };
}

function expectValid(engine: string, drafts: readonly RaspDraft[]): void {
  for (const [index, draft] of drafts.entries()) {
    const event = eventOf(draft, index + 1, engine);
    expect(explainRasp(event), draft.type).toBeNull();
    // The same members in the same order: the conversation is folded from either.
    expect(
      JSON.stringify(event.data) === JSON.stringify(draft.data),
      `${draft.type}: the stored text says what the draft says`,
    ).toBe(true);
  }
}

// Ranges are equal or disjoint and leave no gap: sorted, each begins where the one before it ended.
function coverOf(drafts: readonly RaspDraft[], stream: StreamName, begin: number): number {
  const ranges = new Map<string, readonly [number, number]>();
  for (const { range } of drafts)
    if (range?.stream === stream) ranges.set(`${range.from}-${range.to}`, [range.from, range.to]);
  let end = begin;
  for (const [from, to] of [...ranges.values()].toSorted((a, b) => a[0] - b[0] || a[1] - b[1])) {
    expect(from, `${stream}: the range ${from}-${to} begins where the one before it ended`).toBe(end);
    end = to;
  }
  return end - begin;
}

export function joinLines(...texts: readonly string[]): string {
  return texts.map((text) => `${text}\n`).join('');
}

// Type and data of each draft, for complete comparisons.
export function brief(drafts: readonly RaspDraft[]): [RaspType, unknown][] {
  return drafts.map(({ type, data }) => [type, data]);
}

export function typesOf(drafts: readonly RaspDraft[]): RaspType[] {
  return drafts.map(({ type }) => type);
}

export function ofType<T extends RaspType>(drafts: readonly RaspDraft[], type: T): RaspDraft<T>[] {
  return drafts.filter((draft): draft is RaspDraft<T> => draft.type === type);
}

export function warningsOf(drafts: readonly RaspDraft[]): string[] {
  return ofType(drafts, 'diagnostic.parser.warning').map(({ data }) => data.code);
}

export function dataOf<T extends RaspType>(drafts: readonly RaspDraft[], type: T): RaspData[T][] {
  return ofType(drafts, type).map(({ data }) => data);
}
