// Encodes a text as a QR code (ISO/IEC 18004, byte mode, error correction M, versions 1 to 12) and draws it on a
// terminal.
import type { Style } from './style.js';

// Per version: error correction bytes of a block, and how many blocks of how many data bytes there are. Level M.
const BLOCKS: readonly (readonly [ec: number, ...groups: (readonly [count: number, data: number])[]])[] = [
  [10, [1, 16]],
  [16, [1, 28]],
  [26, [1, 44]],
  [18, [2, 32]],
  [24, [2, 43]],
  [16, [4, 27]],
  [18, [4, 31]],
  [22, [2, 38], [2, 39]],
  [22, [3, 36], [2, 37]],
  [26, [4, 43], [1, 44]],
  [30, [1, 50], [4, 51]],
  [22, [6, 36], [2, 37]],
];
const ALIGNMENT: readonly (readonly number[])[] = [
  [],
  [6, 18],
  [6, 22],
  [6, 26],
  [6, 30],
  [6, 34],
  [6, 22, 38],
  [6, 24, 42],
  [6, 26, 46],
  [6, 28, 50],
  [6, 30, 54],
  [6, 32, 58],
];
const BYTE_MODE = 0b0100;
const LEVEL_M = 0b00;
const PADDING = [0xec, 0x11];
const FORMAT_MASK = 0b101010000010010;
const MASKS: readonly ((row: number, column: number) => boolean)[] = [
  (row, column) => (row + column) % 2 === 0,
  (row) => row % 2 === 0,
  (_row, column) => column % 3 === 0,
  (row, column) => (row + column) % 3 === 0,
  (row, column) => (Math.floor(row / 2) + Math.floor(column / 3)) % 2 === 0,
  (row, column) => ((row * column) % 2) + ((row * column) % 3) === 0,
  (row, column) => (((row * column) % 2) + ((row * column) % 3)) % 2 === 0,
  (row, column) => (((row + column) % 2) + ((row * column) % 3)) % 2 === 0,
];

// The field GF(256) of the error correction.
const EXP = new Uint8Array(512);
const LOG = new Uint8Array(256);
for (let power = 0, value = 1; power < 255; power += 1) {
  EXP[power] = EXP[power + 255] = value;
  LOG[value] = power;
  value = (value << 1) ^ (value & 0x80 ? 0x11d : 0);
}

// True is a dark module; null if the text is too long.
export function encodeQrCode(text: string): readonly (readonly boolean[])[] | null {
  const bytes = Buffer.from(text);
  const version = 1 + BLOCKS.findIndex((_, index) => bytes.length + (index + 1 > 9 ? 3 : 2) <= capacityOf(index + 1));
  if (version === 0) return null;
  const codewords = interleave(toData(bytes, version), version);
  const candidates = MASKS.map((_, mask) => drawMatrix(codewords, version, mask));
  const penalties = candidates.map(penaltyOf);
  return candidates[penalties.indexOf(Math.min(...penalties))] ?? null;
}

function capacityOf(version: number): number {
  const [, ...groups] = BLOCKS[version - 1] ?? [0];
  return groups.reduce((sum, [count, data]) => sum + count * data, 0);
}

function toData(bytes: Buffer, version: number): number[] {
  const bits: number[] = [];
  const push = (value: number, length: number): void => {
    for (let bit = length - 1; bit >= 0; bit -= 1) bits.push((value >> bit) & 1);
  };
  push(BYTE_MODE, 4);
  push(bytes.length, version > 9 ? 16 : 8);
  for (const byte of bytes) push(byte, 8);
  const capacity = capacityOf(version);
  push(0, Math.min(4, capacity * 8 - bits.length));
  while (bits.length % 8 !== 0) bits.push(0);
  const data: number[] = [];
  for (let at = 0; at < bits.length; at += 8) data.push(Number.parseInt(bits.slice(at, at + 8).join(''), 2));
  for (let at = 0; data.length < capacity; at += 1) data.push(PADDING[at % 2] ?? 0);
  return data;
}

// Data and error correction of all blocks, byte by byte in turn.
function interleave(data: readonly number[], version: number): number[] {
  const [ec = 0, ...groups] = BLOCKS[version - 1] ?? [0];
  const blocks: number[][] = [];
  let at = 0;
  for (const [count, length] of groups)
    for (let block = 0; block < count; block += 1) blocks.push(data.slice(at, (at += length)));
  const corrections = blocks.map((block) => correctionOf(block, ec));
  return [...inTurn(blocks), ...inTurn(corrections)];
}

// The first byte of each block, then the second of each, and so on.
function inTurn(blocks: readonly (readonly number[])[]): number[] {
  const longest = Math.max(...blocks.map(({ length }) => length));
  return Array.from({ length: longest }, (_, index) => blocks.flatMap((block) => block[index] ?? [])).flat();
}

// The remainder of the data divided by the generator polynomial.
function correctionOf(data: readonly number[], length: number): number[] {
  let generator = [1];
  for (let power = 0; power < length; power += 1) {
    const next = [...generator, 0];
    for (const [index, value] of generator.entries())
      next[index + 1] = (next[index + 1] ?? 0) ^ multiply(value, EXP[power] ?? 0);
    generator = next;
  }
  const rest = [...data, ...Array.from({ length }, () => 0)];
  for (let index = 0; index < data.length; index += 1) {
    const factor = rest[index] ?? 0;
    for (const [offset, value] of generator.entries())
      rest[index + offset] = (rest[index + offset] ?? 0) ^ multiply(value, factor);
  }
  return rest.slice(data.length);
}

function multiply(one: number, other: number): number {
  return one === 0 || other === 0 ? 0 : (EXP[(LOG[one] ?? 0) + (LOG[other] ?? 0)] ?? 0);
}

// Draws the fixed patterns, then the codewords in two-column strips from the right, masked.
function drawMatrix(codewords: readonly number[], version: number, mask: number): boolean[][] {
  const size = 17 + 4 * version;
  const modules: (boolean | null)[][] = Array.from({ length: size }, () => Array.from({ length: size }, () => null));
  const set = (row: number, column: number, isDark: boolean): void => {
    const line = modules[row];
    if (line && column >= 0 && column < size) line[column] = isDark;
  };
  for (const [top, left] of [
    [0, 0],
    [0, size - 7],
    [size - 7, 0],
  ] as const)
    drawFinder(set, top, left);
  for (let at = 8; at < size - 8; at += 1) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  drawAlignment(set, version, size);
  drawFormat(set, mask, size);
  drawVersion(set, version, size);
  const bits = codewords.flatMap((word) => Array.from({ length: 8 }, (_, bit) => (word >> (7 - bit)) & 1));
  let next = 0;
  for (let right = size - 1, isUp = true; right > 0; right -= right === 8 ? 3 : 2, isUp = !isUp) {
    for (let step = 0; step < size; step += 1) {
      const row = isUp ? size - 1 - step : step;
      for (const column of [right, right - 1]) {
        if (modules[row]?.[column] !== null) continue;
        set(row, column, (bits[next] === 1) !== (MASKS[mask]?.(row, column) ?? false));
        next += 1;
      }
    }
  }
  return modules.map((line) => line.map((module) => module === true));
}

type SetModule = (row: number, column: number, isDark: boolean) => void;

function drawFinder(set: SetModule, top: number, left: number): void {
  for (let row = -1; row <= 7; row += 1)
    for (let column = -1; column <= 7; column += 1) {
      const ring = Math.max(Math.abs(row - 3), Math.abs(column - 3));
      set(top + row, left + column, ring <= 1 || ring === 3);
    }
}

function drawAlignment(set: SetModule, version: number, size: number): void {
  const places = ALIGNMENT[version - 1] ?? [];
  for (const row of places)
    for (const column of places) {
      const isFinder =
        (row === 6 && column === 6) || (row === 6 && column === size - 7) || (row === size - 7 && column === 6);
      if (isFinder) continue;
      for (let down = -2; down <= 2; down += 1)
        for (let across = -2; across <= 2; across += 1)
          set(row + down, column + across, Math.max(Math.abs(down), Math.abs(across)) !== 1);
    }
}

function drawFormat(set: SetModule, mask: number, size: number): void {
  const data = (LEVEL_M << 3) | mask;
  const bits = ((data << 10) | remainder(data, 10, 0b10100110111)) ^ FORMAT_MASK;
  const isSet = (bit: number): boolean => ((bits >> bit) & 1) === 1;
  const columns = [8, 8, 8, 8, 8, 8, 8, 8, 7, 5, 4, 3, 2, 1, 0];
  const rows = [0, 1, 2, 3, 4, 5, 7, 8, 8, 8, 8, 8, 8, 8, 8];
  for (let bit = 0; bit < 15; bit += 1) {
    set(rows[bit] ?? 0, columns[bit] ?? 0, isSet(bit));
    if (bit < 8) set(8, size - 1 - bit, isSet(bit));
    else set(size - 15 + bit, 8, isSet(bit));
  }
  set(size - 8, 8, true);
}

function drawVersion(set: SetModule, version: number, size: number): void {
  if (version < 7) return;
  const bits = (version << 12) | remainder(version, 12, 0b1111100100101);
  for (let bit = 0; bit < 18; bit += 1) {
    const isDark = ((bits >> bit) & 1) === 1;
    set(Math.floor(bit / 3), size - 11 + (bit % 3), isDark);
    set(size - 11 + (bit % 3), Math.floor(bit / 3), isDark);
  }
}

// Returns the remainder of the shifted value divided by the polynomial.
function remainder(value: number, shift: number, polynomial: number): number {
  let rest = value << shift;
  const length = 32 - Math.clz32(polynomial);
  while (32 - Math.clz32(rest) >= length) rest ^= polynomial << (32 - Math.clz32(rest) - length);
  return rest;
}

// The penalty score of the standard: long runs, blocks, patterns like a finder, too much of one colour.
function penaltyOf(matrix: readonly (readonly boolean[])[]): number {
  const size = matrix.length;
  const columns = matrix.map((_, column) => matrix.map((line) => line[column] ?? false));
  let penalty = 0;
  for (const line of [...matrix, ...columns]) {
    const text = line.map((module) => (module ? '1' : '0')).join('');
    for (const [run] of text.matchAll(/0{5,}|1{5,}/g)) penalty += run.length - 2;
    penalty += 40 * ([...text.matchAll(/(?=00001011101)/g)].length + [...text.matchAll(/(?=10111010000)/g)].length);
  }
  for (let row = 0; row < size - 1; row += 1)
    for (let column = 0; column < size - 1; column += 1) {
      const one = matrix[row]?.[column];
      if (
        one === matrix[row]?.[column + 1] &&
        one === matrix[row + 1]?.[column] &&
        one === matrix[row + 1]?.[column + 1]
      )
        penalty += 3;
    }
  const dark = matrix.flat().filter(Boolean).length;
  return penalty + 10 * Math.floor(Math.abs((dark * 20) / (size * size) - 10));
}

const QUIET = 2;

// Two rows of modules a line, with a light border. In colour it is black on white whatever the terminal's colours are;
// without, light modules are drawn, as for a dark terminal. Empty if the text is too long or the screen too narrow.
export function drawQrCode(text: string, { colour, width }: Style): string {
  const matrix = encodeQrCode(text);
  if (!matrix || matrix.length + 2 * QUIET > width) return '';
  const isLight = (row: number, column: number): boolean => !(matrix[row]?.[column] ?? false);
  const lines: string[] = [];
  for (let row = -QUIET; row < matrix.length + QUIET; row += 2) {
    let line = '';
    for (let column = -QUIET; column < matrix.length + QUIET; column += 1)
      line += BLOCK[(isLight(row, column) ? 2 : 0) + (isLight(row + 1, column) ? 1 : 0)];
    lines.push(colour ? `\u001b[97;40m${line}\u001b[0m` : line);
  }
  return lines.join('\n');
}

const BLOCK = [' ', '▄', '▀', '█'] as const;
