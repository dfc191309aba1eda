// What identifies a host to the others, for as long as its process lives: a random token that lets it read files of
// runs from them, and a key pair that proves to callers who answers. The secrets stay in memory; the database has the
// token's SHA-256 and the public key.
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';

export interface HostIdentity {
  readonly token: string;
  readonly tokenSha256: string;
  // DER (SPKI) as base64url.
  readonly publicKey: string;
  // Signs a challenge for the host id that this process has now.
  prove(challenge: string, hostId: string): string;
}

export function makeHostIdentity(): HostIdentity {
  const token = `prl_${randomBytes(24).toString('base64url')}`;
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return {
    token,
    tokenSha256: createHash('sha256').update(token).digest('hex'),
    publicKey: publicKey.export({ format: 'der', type: 'spki' }).toString('base64url'),
    prove: (challenge, hostId) => sign(null, Buffer.from(`${challenge} ${hostId}`), privateKey).toString('base64url'),
  };
}
