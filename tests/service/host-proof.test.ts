// Which process counts as a host: only one that signs a new challenge with the key of that host.
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { createHmac, createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { makeHostIdentity } from '../../src/ownership/postgres/host-identity.js';
import { answersAs, CHALLENGE_FORM } from '../../src/service/access/host-proof.js';
import { hashToken } from '../../src/service/access/tokens.js';
import { challengeIn, listenAsOtherProgram } from '../support/other-program.js';

const [host1, host2] = [makeHostIdentity(), makeHostIdentity()];
const KEYS = new Map([
  ['host_0', host2.publicKey],
  ['host_1', host1.publicKey],
]);
const RSA = generateKeyPairSync('rsa', { modulusLength: 2048 })
  .publicKey.export({ format: 'der', type: 'spki' })
  .toString('base64url');
const ask = (url: string, keys: ReadonlyMap<string, string> = KEYS) =>
  answersAs(keys, url, AbortSignal.timeout(10_000));
const tell = (response: ServerResponse, proof: unknown, id: unknown = 'host_1', status = 200) =>
  void response.writeHead(status).end(JSON.stringify({ status: 'ok', host_id: id, proof }));

test('a proof is an ed25519 signature of challenge and id, different for each of them', () => {
  const key = createPublicKey({ key: Buffer.from(host1.publicKey, 'base64url'), format: 'der', type: 'spki' });
  const proof = Buffer.from(host1.prove('challenge-challenge', 'host_1'), 'base64url');
  expect(key.asymmetricKeyType).toBe('ed25519');
  expect(verify(null, Buffer.from('challenge-challenge host_1'), key, proof)).toBe(true);
  expect(
    new Set([host1.prove('a', 'h'), host2.prove('a', 'h'), host1.prove('b', 'h'), host1.prove('a', 'i')]).size,
  ).toBe(4);
});

test('each identity is another, and its token is known by its hash', () => {
  expect(
    new Set([host1, host2].flatMap(({ token, tokenSha256, publicKey }) => [token, tokenSha256, publicKey])).size,
  ).toBe(6);
  expect(host1.tokenSha256).toBe(hashToken(host1.token));
});

test('a host with the key and one of the ids is trusted, by a fresh challenge each time, without a token', async () => {
  const challenges = new Set<string>();
  const host = await listenAsOtherProgram(({ url }, response) => {
    challenges.add(challengeIn(url));
    tell(response, host1.prove(challengeIn(url), 'host_1'));
  });
  expect(await ask(host.url)).toBe(true);
  expect(await ask(`${host.url}/`, new Map([['host_1', host1.publicKey]]))).toBe(true);
  expect(challenges.size).toBe(2);
  for (const challenge of challenges) expect(challenge).toMatch(CHALLENGE_FORM);
  expect(host.asked).toEqual(['GET /readyz undefined', 'GET /readyz undefined']);
});

test('no other is: one without the key, a replayed answer, another host, one not ready or that redirects', async () => {
  const host = await listenAsOtherProgram(({ url }, response) =>
    tell(response, host1.prove(challengeIn(url), 'host_1')),
  );
  const repeated = await (await fetch(`${host.url}/readyz?challenge=an-earlier-challenge`)).text();
  const others = [
    await listenAsOtherProgram(({ url }, response) => tell(response, host2.prove(challengeIn(url), 'host_1'))),
    // Has read the database, so it knows only the public key.
    await listenAsOtherProgram(({ url }, response) =>
      tell(
        response,
        createHmac('sha256', host1.publicKey)
          .update(`${challengeIn(url)} host_1`)
          .digest('base64url'),
      ),
    ),
    await listenAsOtherProgram((_request, response) => void response.end(repeated)),
    // Forwards its challenge to a real host elsewhere.
    await listenAsOtherProgram(({ url }, response) =>
      tell(response, host2.prove(challengeIn(url), 'host_2'), 'host_2'),
    ),
    await listenAsOtherProgram(({ url }, response) => tell(response, host1.prove(challengeIn(url), 'host_2'))),
    await listenAsOtherProgram(({ url }, response) =>
      tell(response, host1.prove(challengeIn(url), 'host_1'), 'host_1', 503),
    ),
    await listenAsOtherProgram(
      ({ url }, response) => void response.writeHead(302, { location: `${host.url}${url}` }).end(),
    ),
    ...(await Promise.all(
      [undefined, '', 7, ['x'], 'é'.repeat(43)].map((proof) =>
        listenAsOtherProgram((_request, response) => tell(response, proof)),
      ),
    )),
    ...(await Promise.all(
      ['', 'null', '[]', '{}'].map((text) => listenAsOtherProgram((_request, response) => void response.end(text))),
    )),
  ];
  for (const { url } of [...others, { url: 'http://127.0.0.1:1' }, { url: 'not an address' }])
    expect(await ask(url), url).toBe(false);
  expect(await ask(host.url)).toBe(true);
  // A key that is missing, damaged or of another kind verifies nothing.
  for (const key of ['', 'AAAA', RSA]) expect(await ask(host.url, new Map([['host_1', key]])), key).toBe(false);
  expect(await answersAs(KEYS, host.url, AbortSignal.abort())).toBe(false);
});
