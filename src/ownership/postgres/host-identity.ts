// The identity of a host for the lifetime of its process: a random token with which it reads run files from other
// hosts, and a key pair with which it proves its identity to callers. The secrets stay in memory; the database stores
// only the SHA-256 of the token and the public key.
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';

export interface HostIdentity {
  readonly token: string;
  readonly tokenSha256: string;
  // DER (SPKI) as base64url.
  readonly publicKey: string;
  // Signs a challenge together with the current host id of this process.
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
