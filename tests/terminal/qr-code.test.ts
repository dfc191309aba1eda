// A QR code is read back here by the standard's rules, without error correction: every block must be free of errors.
import { expect, test } from 'vitest';
import { drawQrCode, encodeQrCode } from '../../src/terminal/qr-code.js';

// Per version at level M: error correction bytes a block, data bytes of each block.
const BLOCKS: Readonly<Record<number, readonly [number, readonly number[]]>> = {
  1: [10, [16]],
  2: [16, [28]],
  3: [26, [44]],
  4: [18, [32, 32]],
  5: [24, [43, 43]],
  6: [16, [27, 27, 27, 27]],
  7: [18, [31, 31, 31, 31]],
  8: [22, [38, 38, 39, 39]],
  9: [22, [36, 36, 36, 37, 37]],
  10: [26, [43, 43, 43, 43, 44]],
  11: [30, [50, 51, 51, 51, 51]],
  12: [22, [36, 36, 36, 36, 36, 36, 37, 37]],
};
const CENTRES: Readonly<Record<number, readonly number[]>> = {
  2: [6, 18],
  3: [6, 22],
  4: [6, 26],
  5: [6, 30],
  6: [6, 34],
  7: [6, 22, 38],
  8: [6, 24, 42],
  9: [6, 26, 46],
  10: [6, 28, 50],
  11: [6, 30, 54],
  12: [6, 32, 58],
};
const MASKS = [
  (r: number, c: number) => (r + c) % 2,
  (r: number) => r % 2,
  (_r: number, c: number) => c % 3,
  (r: number, c: number) => (r + c) % 3,
  (r: number, c: number) => ((r >> 1) + Math.floor(c / 3)) % 2,
  (r: number, c: number) => ((r * c) % 2) + ((r * c) % 3),
  (r: number, c: number) => (((r * c) % 2) + ((r * c) % 3)) % 2,
  (r: number, c: number) => (((r + c) % 2) + ((r * c) % 3)) % 2,
];

function read(matrix: readonly (readonly boolean[])[]): string {
  const size = matrix.length;
  const version = (size - 17) / 4;
  const at = (r: number, c: number): number => (matrix[r]?.[c] ? 1 : 0);
  // Both copies of the format say level M and the same mask.
  const first = [
    [8, 0],
    [8, 1],
    [8, 2],
    [8, 3],
    [8, 4],
    [8, 5],
    [8, 7],
    [8, 8],
    [7, 8],
    [5, 8],
    [4, 8],
    [3, 8],
    [2, 8],
    [1, 8],
    [0, 8],
  ].reduce((bits, [r = 0, c = 0]) => (bits << 1) | at(r, c), 0);
  const second = [
    ...Array.from({ length: 7 }, (_, i) => at(size - 1 - i, 8)),
    ...Array.from({ length: 8 }, (_, i) => at(8, size - 8 + i)),
  ].reduce((bits, bit) => (bits << 1) | bit, 0);
  expect(first).toBe(second);
  const format = (first ^ 0b101010000010010) >> 10;
  expect(format >> 3).toBe(0);
  const mask = MASKS[format & 7];
  const centres = CENTRES[version] ?? [];
  const isFixed = (r: number, c: number): boolean =>
    (r < 9 && c < 9) ||
    (r < 9 && c >= size - 8) ||
    (r >= size - 8 && c < 9) ||
    r === 6 ||
    c === 6 ||
    (version >= 7 && ((r < 6 && c >= size - 11) || (c < 6 && r >= size - 11))) ||
    centres.some((y) =>
      centres.some(
        (x) =>
          Math.abs(r - y) <= 2 &&
          Math.abs(c - x) <= 2 &&
          !((y === 6 && x === 6) || (y === 6 && x === size - 7) || (y === size - 7 && x === 6)),
      ),
    );
  const bits: number[] = [];
  let up = true;
  for (let right = size - 1; right > 0; right -= 2) {
    if (right === 6) right -= 1;
    for (let step = 0; step < size; step += 1)
      for (const c of [right, right - 1]) {
        const r = up ? size - 1 - step : step;
        if (!isFixed(r, c)) bits.push(at(r, c) ^ (mask?.(r, c) === 0 ? 1 : 0));
      }
    up = !up;
  }
  const words = Array.from({ length: bits.length >> 3 }, (_, i) =>
    bits.slice(i * 8, i * 8 + 8).reduce((word, bit) => (word << 1) | bit, 0),
  );
  const [ec, lengths] = BLOCKS[version] ?? [0, []];
  const blocks = lengths.map(() => [] as number[]);
  let next = 0;
  for (let i = 0; i < Math.max(...lengths); i += 1)
    for (const [b, length] of lengths.entries()) if (i < length) blocks[b]?.push(words[next++] ?? 0);
  for (let i = 0; i < ec; i += 1) for (const block of blocks) block.push(words[next++] ?? 0);
  for (const block of blocks) for (let power = 0; power < ec; power += 1) expect(syndrome(block, power)).toBe(0);
  const data = blocks.flatMap((block, b) => block.slice(0, lengths[b]));
  const stream = data.flatMap((word) => Array.from({ length: 8 }, (_, bit) => (word >> (7 - bit)) & 1));
  const takeBits = (length: number): number => stream.splice(0, length).reduce((value, bit) => (value << 1) | bit, 0);
  expect(takeBits(4)).toBe(0b0100);
  return Buffer.from(Array.from({ length: takeBits(version > 9 ? 16 : 8) }, () => takeBits(8))).toString();
}

function syndrome(block: readonly number[], power: number): number {
  let root = 1;
  for (let i = 0; i < power; i += 1) root = double(root);
  return block.reduce((sum, word) => multiply(sum, root) ^ word, 0);
}
const double = (value: number): number => ((value << 1) ^ (value & 0x80 ? 0x11d : 0)) & 0x1ff;
function multiply(one: number, other: number): number {
  let [sum, factor] = [0, one];
  for (let rest = other; rest > 0; rest >>= 1, factor = double(factor)) if (rest & 1) sum ^= factor;
  return sum;
}

test('a text of any length up to the limit is read back as it was', () => {
  const text = `https://parley.example.com/#code=prc_${'aB3-_x9Zq'.repeat(40)}`;
  for (let length = 1; length <= 287; length += 13)
    expect(read(encodeQrCode(text.slice(0, length)) ?? [])).toBe(text.slice(0, length));
  expect(read(encodeQrCode('héé 漢字') ?? [])).toBe('héé 漢字');
});

test('a code that is too long or too large for the screen is not drawn', () => {
  expect(encodeQrCode('x'.repeat(300))).toBeNull();
  expect(drawQrCode('x'.repeat(300), { colour: false, width: 100 })).toBe('');
  expect(drawQrCode('https://example.com', { colour: false, width: 20 })).toBe('');
});

test('it is drawn with half blocks and a light border, in fixed colours where there are colours', () => {
  const plain = drawQrCode('https://example.com', { colour: false, width: 80 }).split('\n');
  expect(plain[0]).toMatch(/^█+$/);
  const width = [...(plain[0] ?? '')].length;
  expect(plain.every((line) => line.startsWith('██') && [...line].length === width)).toBe(true);
  expect(drawQrCode('https://example.com', { colour: true, width: 80 })).toMatch(/^\u001b\[97;40m█+\u001b\[0m\n/);
});
