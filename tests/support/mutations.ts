// Damages a recorded stream, for properties that hold for any output of an engine.
import * as fc from 'fast-check';
import type { StreamName } from '../../src/rasp/event.js';

// One change to a stream: truncated, duplicated, overwritten, swapped lines, inserted bytes.
export type Mutation = (bytes: Buffer) => Buffer;

const at = (bytes: Buffer, part: number) => Math.floor(part * bytes.length);

export const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.double({ min: 0, max: 1, noNaN: true }).map(
    (part): Mutation =>
      (bytes) =>
        bytes.subarray(0, at(bytes, part)),
  ),
  fc.double({ min: 0, max: 1, noNaN: true }).map(
    (part): Mutation =>
      (bytes) =>
        bytes.subarray(at(bytes, part)),
  ),
  fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.uint8Array({ minLength: 1, maxLength: 12 })).map(
    ([part, noise]): Mutation =>
      (bytes) =>
        Buffer.concat([bytes.subarray(0, at(bytes, part)), noise, bytes.subarray(at(bytes, part))]),
  ),
  fc
    .tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 0, max: 255 }))
    .map(([part, byte]): Mutation => (bytes) => {
      const copy = Buffer.from(bytes);
      if (copy.length > 0) copy[Math.min(copy.length - 1, at(copy, part))] = byte;
      return copy;
    }),
  fc.infiniteStream(fc.nat()).map(
    (order): Mutation =>
      (bytes) =>
        shuffleLines(bytes, order),
  ),
  fc
    .constantFrom(
      '\r\n',
      '\n\n',
      '\u001b[31m',
      '\ufeff',
      '\0',
      '<Execution Info>',
      '</Execution Info>',
      '```json\n',
      '{"type":"error"}\n',
      '{',
      '}',
      '"',
    )
    .map(
      (insert): Mutation =>
        (bytes) =>
          Buffer.concat([bytes, Buffer.from(insert), bytes]),
    ),
);

function shuffleLines(bytes: Buffer, order: Iterator<number>): Buffer {
  const lines = bytes.toString('latin1').split('\n');
  for (let index = lines.length - 1; index > 0; index -= 1) {
    const other = (order.next().value as number) % (index + 1);
    [lines[index], lines[other]] = [lines[other] ?? '', lines[index] ?? ''];
  }
  return Buffer.from(lines.join('\n'), 'latin1');
}

// Chunks of a stream, with the lengths in `sizes`.
export function* cut(name: StreamName, bytes: Buffer, sizes: Iterator<number>): Generator<[StreamName, Buffer]> {
  for (let from = 0; from < bytes.length;) {
    const to = Math.min(bytes.length, from + (sizes.next().value as number));
    yield [name, bytes.subarray(from, to)];
    from = to;
  }
}
