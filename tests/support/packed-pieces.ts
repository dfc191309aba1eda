// Stored segments of a journal: compressed data has bits whose change does not alter the decompressed text.
import { unpackBody, type PackedBody } from '../../src/store/sqlite/pack-body.js';

export function saysTheSame(piece: PackedBody, changed: Uint8Array): boolean {
  try {
    return Buffer.compare(unpackBody(piece), unpackBody({ body: changed, packed: piece.packed })) === 0;
  } catch {
    return false;
  }
}
