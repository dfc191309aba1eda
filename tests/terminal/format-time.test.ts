import { expect, test } from 'vitest';
import { formatAge, formatCount, formatDuration, formatSize } from '../../src/terminal/format-time.js';

test.each([
  [-5, '0 ms'],
  [0, '0 ms'],
  [850, '850 ms'],
  [999.4, '999 ms'],
  [999.6, '1.0 s'],
  [1234, '1.2 s'],
  [9949, '9.9 s'],
  [9960, '10 s'],
  [12_400, '12 s'],
  [59_600, '1 m'],
  [125_000, '2 m 5 s'],
  [3_600_000, '1 h'],
  [3_660_000, '1 h 1 m'],
  [90_000_000, '1 d 1 h'],
])('a duration of %d ms is %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test.each([
  [-1, '0 s'],
  [12_999, '12 s'],
  [59_999, '59 s'],
  [60_000, '1 m'],
  [200_000, '3 m'],
  [3_599_999, '59 m'],
  [7_200_000, '2 h'],
  [7_500_000, '2 h 5 m'],
  [86_399_999, '23 h 59 m'],
  [86_400_000, '1 d'],
  [5.9 * 86_400_000, '5 d'],
])('an age of %d ms is %s', (ms, text) => {
  expect(formatAge(ms)).toBe(text);
});

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1.0 kB'],
  [999_949, '999.9 kB'],
  [999_950, '1.0 MB'],
  [3_400_000, '3.4 MB'],
  [5e15, '5000.0 TB'],
])('%d bytes are %s', (bytes, text) => {
  expect(formatSize(bytes)).toBe(text);
});

test.each([
  [0, '0'],
  [950, '950'],
  [1234, '1.2k'],
  [3_400_000, '3.4M'],
])('a count of %d is %s', (count, text) => {
  expect(formatCount(count)).toBe(text);
});
