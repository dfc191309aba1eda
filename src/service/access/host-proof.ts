// How a host proves its identity before a caller sends it a token: it signs a random challenge and its id with a
// private key that only its process has. The public key is in its row of the database. A recorded response is useless,
// because every challenge is different.
import { createPublicKey, randomBytes, verify } from 'node:crypto';

// Contains no space, so that the signed text can be parsed in only one way.
export const CHALLENGE_FORM = /^[\w-]{16,128}$/;

// Public keys by host id.
export type HostKeys = ReadonlyMap<string, string>;

// Whether one of these hosts listens at the address and is ready. The ids matter: another program could forward a
// challenge to another host of the same database.
export async function answersAs(keys: HostKeys, url: string, signal: AbortSignal): Promise<boolean> {
  const challenge = randomBytes(24).toString('base64url');
  try {
    const answer = await fetch(`${withoutSlash(url)}/readyz?challenge=${challenge}`, { signal, redirect: 'error' });
    const { host_id: id, proof } = (await answer.json()) as { host_id?: unknown; proof?: unknown };
    if (!answer.ok || typeof id !== 'string' || typeof proof !== 'string') return false;
    const key = keys.get(id);
    return key !== undefined && isProof(key, proof, `${challenge} ${id}`);
  } catch {
    return false;
  }
}

// Throws if the key cannot be read.
function isProof(publicKey: string, proof: string, text: string): boolean {
  const key = createPublicKey({ key: Buffer.from(publicKey, 'base64url'), format: 'der', type: 'spki' });
  return key.asymmetricKeyType === 'ed25519' && verify(null, Buffer.from(text), key, Buffer.from(proof, 'base64url'));
}

export function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '');
}
