// Who is believed to be a host: whoever answers a challenge that was never asked before as nobody else can.
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { answersAs, CHALLENGE_FORM, proofOf } from '../../src/service/host-proof.js';
import { challengeIn, listenAsStranger } from '../support/stranger.js';

const KEY = 'prl_key';
const ask = (url: string, ids: readonly string[] = ['host_1']) => answersAs(new Set(ids), url, KEY, AbortSignal.timeout(10_000));
const tell = (response: ServerResponse, proof: unknown, id: unknown = 'host_1', status = 200) => void response.writeHead(status).end(JSON.stringify({ status: 'ok', host_id: id, proof }));

test('a proof is the HMAC of the challenge and the id, and another for another key, challenge or host', () => {
  // printf 'challenge-challenge host_1' | openssl dgst -sha256 -hmac prl_key -binary | basenc --base64url, without the =
  expect(proofOf(KEY, 'challenge-challenge', 'host_1')).toBe('zSjx9JLYFlq7d_ZFTUu5bmi6Ix49l7nw__g_80lleFw');
  expect(new Set([proofOf(KEY, 'a', 'h'), proofOf('other', 'a', 'h'), proofOf(KEY, 'b', 'h'), proofOf(KEY, 'a', 'i')]).size).toBe(4);
});

test('whoever has the key and one of the ids is believed, and is asked something else each time, without a token', async () => {
  const challenges = new Set<string>();
  const host = await listenAsStranger(({ url }, response) => {
    challenges.add(challengeIn(url));
    tell(response, proofOf(KEY, challengeIn(url), 'host_1'));
  });
  expect(await ask(host.url)).toBe(true);
  expect(await ask(`${host.url}/`, ['host_0', 'host_1'])).toBe(true);
  expect(challenges.size).toBe(2);
  for (const challenge of challenges) expect(challenge).toMatch(CHALLENGE_FORM);
  expect(host.asked).toEqual(['GET /readyz undefined', 'GET /readyz undefined']);
});

test('nobody else is: not one without the key, one that repeats an answer, another host, one that is not ready or leads elsewhere', async () => {
  const host = await listenAsStranger(({ url }, response) => tell(response, proofOf(KEY, challengeIn(url), 'host_1')));
  const repeated = await (await fetch(`${host.url}/readyz?challenge=an-earlier-challenge`)).text();
  const others = [
    await listenAsStranger(({ url }, response) => tell(response, proofOf('prl_guessed', challengeIn(url), 'host_1'))),
    await listenAsStranger((_request, response) => void response.end(repeated)),
    // Has its challenge answered by a real host that is somewhere else.
    await listenAsStranger(({ url }, response) => tell(response, proofOf(KEY, challengeIn(url), 'host_2'), 'host_2')),
    await listenAsStranger(({ url }, response) => tell(response, proofOf(KEY, challengeIn(url), 'host_2'))),
    await listenAsStranger(({ url }, response) => tell(response, proofOf(KEY, challengeIn(url), 'host_1'), 'host_1', 503)),
    await listenAsStranger(({ url }, response) => void response.writeHead(302, { location: `${host.url}${url}` }).end()),
    ...(await Promise.all([undefined, '', 7, ['x'], 'é'.repeat(43)].map((proof) => listenAsStranger((_request, response) => tell(response, proof))))),
    ...(await Promise.all(['', 'null', '[]', '{}'].map((text) => listenAsStranger((_request, response) => void response.end(text))))),
  ];
  for (const { url } of [...others, { url: 'http://127.0.0.1:1' }, { url: 'not an address' }]) expect(await ask(url), url).toBe(false);
  expect(await ask(host.url)).toBe(true);
  expect(await answersAs(new Set(['host_1']), host.url, KEY, AbortSignal.abort())).toBe(false);
});
