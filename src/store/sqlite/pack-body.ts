// Compresses large parts of a journal: event lines are so repetitive that compressing costs less than writing them
// twice, into the write-ahead log and into the database. Small parts stay as they are, and so do those that do not get
// smaller.
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import { damageText } from '../../kernel/damage-texts.js';
import { DamagedDataError } from '../../kernel/stored-json.js';

// Compressing a smaller part costs more than it saves.
export const LEAST_PACKED_BYTES = 2 * 1024;
// The maximum size of a decompressed part, whatever a damaged row states.
const MOST_AT_ONCE = 4 * 1024 * 1024;
// Compressed data is used only if it is much smaller.
const MOST_OF_PLAIN = 0.75;
const FASTEST = { [constants.BROTLI_PARAM_QUALITY]: 0, [constants.BROTLI_PARAM_LGWIN]: 18 };
// Event lines become a quarter smaller than with the fastest, in eight times the time. Unpacking takes the same time.
export const SMALLEST = { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: 19 };

// The column as it is read: a damaged value may not be an exact number.
export const PACKED = 'MAX(-1, MIN(packed, 4294967296)) AS packed';

export interface PackedBody {
  readonly body: Uint8Array;
  // The decompressed size; 0: the data is not compressed.
  readonly packed: number;
}

export interface PackOptions {
  readonly leastBytes?: number;
  readonly effort?: typeof FASTEST;
}

export function packBody(
  plain: Uint8Array,
  { leastBytes = LEAST_PACKED_BYTES, effort = FASTEST }: PackOptions = {},
): PackedBody {
  const { length } = plain;
  if (length < leastBytes) return { body: plain, packed: 0 };
  const body = brotliCompressSync(plain, {
    params: { ...effort, [constants.BROTLI_PARAM_SIZE_HINT]: length },
    chunkSize: Math.min(Math.max(length >> 3, 4 * 1024), 64 * 1024),
  });
  return body.length > length * MOST_OF_PLAIN ? { body: plain, packed: 0 } : { body, packed: length };
}

export function unpackBody({ body, packed }: PackedBody): Uint8Array {
  if (!(body instanceof Uint8Array)) throw new DamagedDataError(damageText('damage.not_bytes'));
  if (packed === 0) return body;
  let plain: Buffer;
  try {
    plain = brotliDecompressSync(body, {
      maxOutputLength: packed,
      // One byte more than needed: zlib allocates another piece when one is full.
      chunkSize: Math.min(Math.max(packed + 1, 64), MOST_AT_ONCE),
    });
  } catch (cause) {
    throw new DamagedDataError(damageText('damage.not_unpacked'), { cause });
  }
  if (plain.length !== packed)
    throw new DamagedDataError(damageText('damage.size', { bytes: plain.length, expected: packed }));
  return plain;
}
