// The hash chain of a run's journal: each flush is hashed together with the head before it. It reveals every change by
// somebody who cannot also rewrite the head.
import { createHash, hash } from 'node:crypto';

export const FIRST_DIGEST = '0'.repeat(64);

// Small flushes are copied behind the head and hashed by one call: an object for each hash would cost more.
const LARGEST_COPY = 32 * 1024;
const HEAD_BYTES = FIRST_DIGEST.length + 1;
const scratch = Buffer.allocUnsafeSlow(HEAD_BYTES + LARGEST_COPY);

export function nextDigest(head: string, rasp: Uint8Array): string {
  if (head.length === FIRST_DIGEST.length && rasp.length <= LARGEST_COPY) {
    scratch.write(`${head}\n`, 0, 'latin1');
    scratch.set(rasp, HEAD_BYTES);
    return hash('sha256', scratch.subarray(0, HEAD_BYTES + rasp.length));
  }
  return createHash('sha256').update(head).update('\n').update(rasp).digest('hex');
}
