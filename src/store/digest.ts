// The hash chain of a run's journal: each flush is hashed together with the head before it. It reveals every change by
// somebody who cannot also rewrite the head.
import { createHash } from 'node:crypto';

export const FIRST_DIGEST = '0'.repeat(64);

export function nextDigest(head: string, rasp: Uint8Array): string {
  return createHash('sha256').update(head).update('\n').update(rasp).digest('hex');
}
