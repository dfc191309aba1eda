import { describe, expect, test } from 'vitest';
import { EventBuffer } from '../../src/journal/event-buffer.js';
import type { RaspDraft } from '../../src/rasp/draft.js';
import type { RaspEvent } from '../../src/rasp/event.js';
import { createStamp } from '../../src/rasp/stamp.js';
import { explainRasp } from '../../src/rasp/validate.js';

const TS = '2026-11-15T12:00:00.000Z';

function message(text: string, changes: Partial<RaspDraft> = {}): RaspDraft {
  return {
    type: 'agent.message.final',
    data: { text },
    json: ['{"text":', JSON.stringify(text), '}'],
    parser: 'codex_ndjson',
    confidence: 1,
    sessionId: null,
    itemId: null,
    interactionId: null,
    range: { stream: 'stdout', from: 0, to: 10 },
    ...changes,
  };
}

function stampAll(drafts: readonly RaspDraft[], firstSeq = 1, buffer = new EventBuffer()): RaspEvent[] {
  const stamp = createStamp({ runId: 'run_1', engine: 'codex', attempt: 1 });
  drafts.forEach((draft, index) => stamp(draft, firstSeq + index, TS, buffer));
  // The bytes must be UTF-8 and JSON: a decoder that refuses anything else reads them.
  const text = new TextDecoder('utf-8', { fatal: true }).decode(buffer.drain());
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as RaspEvent);
}

describe('an event as text', () => {
  test('it is the envelope of the contract, with every member as it was given', () => {
    const [event] = stampAll([
      message('Hi "there"\n漢字 🚀', { sessionId: 's-1', itemId: 'item_1', interactionId: 'int_1' }),
    ]);
    expect(event).toEqual({
      protocol_version: 'rasp/1.0',
      run_id: 'run_1',
      seq: 1,
      ts: TS,
      attempt_number: 1,
      source: { engine: 'codex', parser: 'codex_ndjson', confidence: 1 },
      event: { category: 'agent', type: 'agent.message.final' },
      data: { text: 'Hi "there"\n漢字 🚀' },
      correlation: { session_id: 's-1', item_id: 'item_1', interaction_id: 'int_1' },
      raw_ref: { attempt_number: 1, stream: 'stdout', byte_from: 0, byte_to: 10, encoding: 'utf-8' },
    });
    expect(explainRasp(event)).toBeNull();
  });

  test('each combination of ids gives exactly these ids, whatever the event had before', () => {
    const ids = [null, 'a', 'b'];
    const drafts = ids.flatMap((sessionId) =>
      ids.flatMap((itemId) =>
        [null, 'int_1'].map((interactionId) => message('x', { sessionId, itemId, interactionId })),
      ),
    );
    const mixed = [...drafts, ...drafts.toReversed()];
    expect(stampAll(mixed).map((event) => event.correlation)).toEqual(
      mixed.map(({ sessionId, itemId, interactionId }) =>
        Object.fromEntries(
          [
            ['session_id', sessionId],
            ['item_id', itemId],
            ['interaction_id', interactionId],
          ].filter(([, id]) => id !== null),
        ),
      ),
    );
  });

  test('ids of any characters survive', () => {
    const strange = ['', 'ümlaut', '漢字', '🚀', 'quote"back\\slash', 'new\nline', '\u2028', '\u007f', '\0', '\ud800'];
    const events = stampAll(strange.map((id) => message('x', { sessionId: id, itemId: id, interactionId: id })));
    expect(events.map((event) => event.correlation.item_id)).toEqual(strange);
    expect(events.map((event) => event.correlation.session_id)).toEqual(strange);
    expect(events.map((event) => event.correlation.interaction_id)).toEqual(strange);
  });

  test('numbers are exact up to the largest safe one', () => {
    const numbers = [0, 1, 9, 10, 99, 100, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 40 + 1, Number.MAX_SAFE_INTEGER];
    const events = stampAll(numbers.map((to) => message('x', { range: { stream: 'stderr', from: to, to } })));
    expect(events.map((event) => event.raw_ref?.byte_to)).toEqual(numbers);
    expect(stampAll([message('x')], 2 ** 31 + 5)[0]?.seq).toBe(2 ** 31 + 5);
  });

  test('kinds, confidences and parsers are not mixed up', () => {
    const drafts = [
      message('x'),
      message('x', { confidence: 0.5 }),
      message('x', { parser: 'orchestrator' }),
      message('x', { type: 'agent.reasoning' }),
      message('x'),
    ];
    expect(stampAll(drafts).map(({ source, event }) => [event.type, source.parser, source.confidence])).toEqual(
      drafts.map(({ type, parser, confidence }) => [type, parser, confidence]),
    );
  });

  test('a text of megabytes in characters of three bytes is whole, and so are the events around it', () => {
    const long = '漢字🚀é'.repeat(400_000);
    const buffer = new EventBuffer();
    const events = stampAll(
      [message('before'), message(long), message('after'), message(long, { json: JSON.stringify({ text: long }) })],
      1,
      buffer,
    );
    expect(events.map((event) => event.data.text === long || event.data.text)).toEqual(['before', true, 'after', true]);
    expect(stampAll([message('again')], 1, buffer)[0]?.data.text).toBe('again');
  });

  test('the buffer releases the memory of a single large flush', () => {
    const buffer = new EventBuffer();
    stampAll([message('x'.repeat(20 * 1024 * 1024))], 1, buffer);
    expect(buffer.capacity).toBeLessThanOrEqual(4 * 1024 * 1024);
  });
});
