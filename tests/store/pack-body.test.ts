// Large segments of a journal are compressed and decompressed without loss; one that cannot be decompressed is damage.
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { DamagedDataError } from '../../src/kernel/stored-json.js';
import { packBody, unpackBody } from '../../src/store/sqlite/pack-body.js';
import { lines } from './conformance.js';
import { runs } from '../support/runs.js';

const LARGE = lines(1, 2000).bytes;

test('many lines take a fifth of their room, and are the same bytes again', () => {
  const { body, packed } = packBody(LARGE);
  expect(packed).toBe(LARGE.length);
  expect(body.length).toBeLessThan(LARGE.length / 5);
  expect(Buffer.from(unpackBody({ body, packed })).equals(LARGE)).toBe(true);
});

test('a few lines, and incompressible text, stay unpacked', () => {
  for (const plain of [lines(1, 5).bytes, Buffer.alloc(0), randomBytes(100_000)]) {
    expect(packBody(plain)).toEqual({ body: plain, packed: 0 });
    expect(unpackBody({ body: plain, packed: 0 })).toBe(plain);
  }
});

test('any change of packed bytes, of their end or length is damage, or gives other bytes', () => {
  const { body, packed } = packBody(LARGE);
  const isNoticed = (changed: Uint8Array, length: number): boolean => {
    try {
      return !Buffer.from(unpackBody({ body: changed, packed: length })).equals(LARGE);
    } catch (error) {
      expect(error).toBeInstanceOf(DamagedDataError);
      return true;
    }
  };
  const cases = Math.ceil(body.length / 7);
  const step = 7 * Math.floor(cases / runs(cases));
  for (let at = 0; at < body.length; at += step) {
    const flipped = Buffer.from(body);
    flipped[at] = (flipped[at] ?? 0) ^ (1 << (at % 8));
    expect(isNoticed(flipped, packed), `byte ${at}`).toBe(true);
  }
  for (const length of [packed - 1, packed + 1, 1, -1, 1e15, Number.NaN])
    expect(() => unpackBody({ body, packed: length }), `length ${length}`).toThrow(DamagedDataError);
  expect(() => unpackBody({ body: body.subarray(0, -1), packed })).toThrow(DamagedDataError);
  expect(() => unpackBody({ body: LARGE, packed })).toThrow(DamagedDataError);
});
