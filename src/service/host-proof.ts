// How a host shows that it is the one it is taken for, before anybody sends it a token: it answers a random challenge with what only those can
// make who know the secret of the database. What it answered once is of no use to whoever repeats it.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

// No space is in it, so that what is signed can be read in one way only.
export const CHALLENGE_FORM = /^[\w-]{16,128}$/;

export function proofOf(key: string, challenge: string, hostId: string): string {
  return createHmac('sha256', key).update(`${challenge} ${hostId}`).digest('base64url');
}

// One of these hosts answers there, and is ready. Their ids matter: a stranger could have a challenge answered by another host of the same database.
export async function answersAs(hostIds: ReadonlySet<string>, url: string, key: string, signal: AbortSignal): Promise<boolean> {
  const challenge = randomBytes(24).toString('base64url');
  try {
    const answer = await fetch(`${withoutSlash(url)}/readyz?challenge=${challenge}`, { signal, redirect: 'error' });
    const { host_id: id, proof } = (await answer.json()) as { host_id?: unknown; proof?: unknown };
    return answer.ok && typeof id === 'string' && hostIds.has(id) && typeof proof === 'string' && isSame(proof, proofOf(key, challenge, id));
  } catch {
    return false;
  }
}

export function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '');
}

function isSame(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}
