import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LineFramer, MAX_LINE_BYTES, PIECE_BYTES } from '../../src/engines/framing.js';
import { runs } from '../support/runs.js';

type Framed =
  | { readonly line: string; readonly from: number; readonly to: number; readonly terminated: boolean }
  | { readonly part: number; readonly from: number; readonly to: number };

// Frames the bytes in chunks of the given sizes, over and over, and checks each unit against the bytes it claims to be.
function frame(source: Buffer, sizes: readonly number[]): Framed[] {
  const framed: Framed[] = [];
  const same = (bytes: Buffer, start: number, end: number, from: number) =>
    expect(bytes.compare(source, from, from + (end - start), start, end)).toBe(0);
  const framer = new LineFramer({
    line: (bytes, start, end, from, to, terminated) => {
      same(bytes, start, end, from);
      framed.push({ line: bytes.toString('latin1', start, Math.min(end, start + 100)), from, to, terminated });
    },
    piece: (bytes, start, end, from, to, part) => {
      same(bytes, start, end, from);
      framed.push({ part, from, to });
    },
  });
  for (let at = 0, turn = 0; at < source.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? 1;
    framer.push(Buffer.from(source.subarray(at, at + size)));
    at += size;
  }
  framer.end();
  return framed;
}

function frameText(text: string, ...sizes: number[]): Framed[] {
  const source = Buffer.from(text);
  return frame(source, sizes.length > 0 ? sizes : [Math.max(1, source.length)]);
}

// A slow reference implementation of the lines of a stream.
function splitLines(source: Buffer): Framed[] {
  const framed: Framed[] = [];
  for (let from = 0; from < source.length;) {
    const lf = source.indexOf(0x0a, from);
    const to = lf < 0 ? source.length : lf + 1;
    framed.push({ line: source.toString('latin1', from, lf < 0 ? to : lf), from, to, terminated: lf >= 0 });
    from = to;
  }
  return framed;
}

function partsOf(framed: readonly Framed[]): number[] {
  return framed.flatMap((unit) => ('part' in unit ? [unit.part] : []));
}

function expectWhole(framed: readonly Framed[], length: number): void {
  let end = 0;
  for (const { from, to } of framed) {
    expect(from).toBe(end);
    expect(to).toBeGreaterThan(from);
    end = to;
  }
  expect(end).toBe(length);
}

describe('lines', () => {
  test('each line comes with the range of its bytes, the line feed included', () => {
    expect(frameText('one\ntwo\n')).toEqual([
      { line: 'one', from: 0, to: 4, terminated: true },
      { line: 'two', from: 4, to: 8, terminated: true },
    ]);
  });

  test('a carriage return before the line feed belongs to the content', () => {
    expect(frameText('one\r\ntwo\r\n')).toEqual([
      { line: 'one\r', from: 0, to: 5, terminated: true },
      { line: 'two\r', from: 5, to: 10, terminated: true },
    ]);
  });

  test('empty lines are lines of one byte', () => {
    expect(frameText('\n\na\n\n')).toEqual([
      { line: '', from: 0, to: 1, terminated: true },
      { line: '', from: 1, to: 2, terminated: true },
      { line: 'a', from: 2, to: 4, terminated: true },
      { line: '', from: 4, to: 5, terminated: true },
    ]);
  });

  test('a last line without a line feed comes at the end, and says so', () => {
    expect(frameText('one\ntwo')).toEqual([
      { line: 'one', from: 0, to: 4, terminated: true },
      { line: 'two', from: 4, to: 7, terminated: false },
    ]);
  });

  test('an empty stream has no lines', () => {
    expect(frameText('')).toEqual([]);
  });

  test('ranges count bytes, not characters', () => {
    expect(frameText('é漢🚀\nb\n').map(({ from, to }) => [from, to])).toEqual([
      [0, 10],
      [10, 12],
    ]);
  });

  test('chunks of one byte give the same lines as one chunk', () => {
    const text = 'one\r\n\nzwölf 漢字 🚀\n{"a":1}\n\n\nlast';
    expect(frameText(text, 1)).toEqual(frameText(text));
  });

  test('a line that came in one push is given out before the next push', () => {
    const seen: string[] = [];
    const framer = new LineFramer({
      line: (bytes, start, end) => seen.push(bytes.toString('utf8', start, end)),
      piece: () => {},
    });
    framer.push(Buffer.from('one\ntw'));
    expect(seen).toEqual(['one']);
    framer.push(Buffer.from('o\n'));
    expect(seen).toEqual(['one', 'two']);
  });

  test('any bytes in any chunks give the lines that a slow split gives', () => {
    const byte = fc.constantFrom(0x0a, 0x0a, 0x0d, 0x00, 0x61, 0x7b, 0xc3, 0xa9, 0xf0, 0xff);
    fc.assert(
      fc.property(
        fc.array(byte, { maxLength: 200 }),
        fc.array(fc.integer({ min: 1, max: 17 }), { minLength: 1, maxLength: 5 }),
        (bytes, sizes) => {
          const source = Buffer.from(bytes);
          expect(frame(source, sizes)).toEqual(splitLines(source));
        },
      ),
      { numRuns: runs(300) },
    );
  });
});

describe('lines that are too long', () => {
  const CHUNKS: readonly (readonly number[])[] = [
    [64 * 1024],
    [333_333],
    [PIECE_BYTES],
    [PIECE_BYTES + 1, 7],
    [MAX_LINE_BYTES],
    [MAX_LINE_BYTES + 1, 1, 100_000],
  ];

  test('a line of exactly the limit is not cut', () => {
    const source = Buffer.concat([Buffer.alloc(MAX_LINE_BYTES, 'x'), Buffer.from('\nnext\n')]);
    for (const sizes of [[source.length], [MAX_LINE_BYTES], [PIECE_BYTES + 1]]) {
      expect(frame(source, sizes).map(({ from, to }) => [from, to])).toEqual([
        [0, MAX_LINE_BYTES + 1],
        [MAX_LINE_BYTES + 1, source.length],
      ]);
    }
    expect(frame(source.subarray(0, MAX_LINE_BYTES), [PIECE_BYTES])).toMatchObject([
      { from: 0, to: MAX_LINE_BYTES, terminated: false },
    ]);
  });

  test('a line of one byte more comes in numbered pieces, and the next line is whole again', () => {
    const source = Buffer.concat([Buffer.alloc(MAX_LINE_BYTES + 1, 'x'), Buffer.from('\nnext\n')]);
    const framed = frame(source, [source.length]);
    expectWhole(framed, source.length);
    expect(partsOf(framed)).toEqual(Array.from({ length: 17 }, (_, part) => part));
    expect(framed.at(-2)).toEqual({ part: 16, from: MAX_LINE_BYTES, to: MAX_LINE_BYTES + 2 });
    expect(framed.at(-1)).toMatchObject({ line: 'next', terminated: true });
    for (const sizes of CHUNKS) expect(frame(source, sizes)).toEqual(framed);
  });

  test('pieces are cut where characters begin, wherever the chunks end', () => {
    // 2 + 3 + 4 bytes: no power of two is a multiple of 9, so most cuts are within a character.
    const source = Buffer.concat([
      Buffer.from('a'),
      Buffer.alloc(MAX_LINE_BYTES + 9 * 50_000, 'é漢🚀'),
      Buffer.from('\n'),
    ]);
    const framed = frame(source, [source.length]);
    expectWhole(framed, source.length);
    for (const { from, to } of framed) expect((source[from] ?? 0) & 0xc0, `the piece ${from}-${to}`).not.toBe(0x80);
    expect(framed.some(({ from, to }) => to - from < PIECE_BYTES)).toBe(true);
    for (const sizes of CHUNKS) expect(frame(source, sizes)).toEqual(framed);
  });

  test('a run of bytes that are no UTF-8 is cut at the size of a piece', () => {
    const source = Buffer.concat([Buffer.alloc(MAX_LINE_BYTES + 1000, Buffer.from([0x80])), Buffer.from('\n')]);
    const framed = frame(source, [source.length]);
    expectWhole(framed, source.length);
    expect(framed.slice(0, -1).every(({ from, to }) => to - from === PIECE_BYTES)).toBe(true);
    for (const sizes of CHUNKS) expect(frame(source, sizes)).toEqual(framed);
  });

  test('a long line without an end is given out whole at the end of the stream', () => {
    const source = Buffer.alloc(MAX_LINE_BYTES + 10, 'é漢🚀');
    const framed = frame(source, [100_000]);
    expectWhole(framed, source.length);
    expect(partsOf(framed)).toHaveLength(framed.length);
  });

  test('two long lines in a row are counted each from zero', () => {
    const long = Buffer.concat([Buffer.alloc(MAX_LINE_BYTES + 1, 'x'), Buffer.from('\n')]);
    const framed = frame(Buffer.concat([long, long]), [PIECE_BYTES * 3]);
    expectWhole(framed, long.length * 2);
    expect(framed.filter((unit) => 'part' in unit && unit.part === 0).map(({ from }) => from)).toEqual([
      0,
      long.length,
    ]);
  });

  test('pieces come while the line is still being printed, so that little is held', () => {
    let covered = 0;
    const framer = new LineFramer({ line: () => {}, piece: (_bytes, _start, _end, _from, to) => (covered = to) });
    framer.push(Buffer.alloc(MAX_LINE_BYTES + 1, 'x'));
    expect(MAX_LINE_BYTES + 1 - covered).toBeLessThanOrEqual(PIECE_BYTES);
  });
});
