// Pieces of a journal as they are stored: what is packed has bits that can be changed without changing what it says.
import { unpackBody, type PackedBody } from '../../src/store/sqlite/pack-body.js';

export function saysTheSame(piece: PackedBody, changed: Uint8Array): boolean {
  try {
    return Buffer.compare(unpackBody(piece), unpackBody({ body: changed, packed: piece.packed })) === 0;
  } catch {
    return false;
  }
}
