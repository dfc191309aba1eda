// Which of the hosts a command uses: the nearest one that proves to be one of them.
import { expect, test } from 'vitest';
import { firstToAnswer, listCandidates, orderHosts } from '../../src/cli/serving/find-cluster-server.js';
import { systemTimers } from '../../src/process/timers.js';
import { makeHostIdentity } from '../../src/ownership/postgres/host-identity.js';
import { challengeIn, listenAsOtherProgram } from '../support/other-program.js';

const { publicKey: KEY, prove } = makeHostIdentity();
const host = (name: string, site: string | null) => ({ name, site });
const row = (host_id: string, name: string, site: string | null, url: string | null) => ({
  host_id,
  name,
  site,
  url,
  public_key: `key of ${host_id}`,
});
const keysOf = (...ids: string[]) => new Map(ids.map((id) => [id, `key of ${id}`]));
const at = (urls: readonly string[], ...ids: string[]) =>
  urls.map((url) => ({ url, keys: new Map(ids.map((id) => [id, KEY])) }));
const says = async (status: number, text: string) =>
  (await listenAsOtherProgram((_request, response) => void response.writeHead(status).end(text))).url;

test('a host of this machine comes first, then one with the files of this directory, then any', () => {
  const [any, files, here, both, other] = [
    host('x', null),
    host('y', 's1'),
    host('desk', null),
    host('desk', 's1'),
    host('z', 's2'),
  ];
  expect(orderHosts([any, files, here, both, other], { name: 'desk', site: 's1' })).toEqual([
    both,
    here,
    files,
    any,
    other,
  ]);
  // A directory without a name does not belong to hosts with shared files.
  expect(orderHosts([other, any], { name: 'desk', site: null })).toEqual([other, any]);
});

test('an address belongs to its listed hosts; the server of the data directory is found by its site', () => {
  const hosts = [
    row('h1', 'x', 's1', 'http://x'),
    row('h2', 'desk', 's2', null),
    row('h3', 'x', 's3', 'http://x'),
    row('h4', 'desk', null, 'http://desk'),
  ];
  const near = { name: 'desk', site: 's2' };
  const [desk, x] = [
    { url: 'http://desk', keys: keysOf('h4') },
    { url: 'http://x', keys: keysOf('h1', 'h3') },
  ];
  expect(listCandidates(hosts, near, null)).toEqual([desk, x]);
  expect(listCandidates(hosts, near, 'http://own')).toEqual([{ url: 'http://own', keys: keysOf('h2') }, desk, x]);
  expect(listCandidates(hosts, { ...near, site: 's3' }, 'http://x')).toEqual([x, desk]);
  // No host has this directory: a server that responds there is none of them.
  for (const site of [null, 's9']) expect(listCandidates(hosts, { ...near, site }, 'http://own')).toEqual([desk, x]);
});

test('skips a server that is silent, down, not ready, another program, another host or that redirects', async () => {
  const { url: good, asked } = await listenAsOtherProgram(
    ({ url }, response) =>
      void response.end(JSON.stringify({ status: 'ok', host_id: 'host_1', proof: prove(challengeIn(url), 'host_1') })),
  );
  const bad = [
    (await listenAsOtherProgram(() => {})).url,
    'http://127.0.0.1:1',
    'not an address',
    await says(200, ''),
    await says(200, 'null'),
    await says(200, '{"status":"ok"}'),
    // The public part of /readyz.
    await says(200, '{"status":"ok","host_id":"host_1"}'),
    await says(200, `{"status":"ok","host_id":"host_1","proof":"${prove('another-challenge', 'host_1')}"}`),
    await says(503, '{"status":"ok","host_id":"host_1"}'),
    (
      await listenAsOtherProgram(
        ({ url }, response) => void response.writeHead(302, { location: `${good}${url}` }).end(),
      )
    ).url,
  ];
  expect(await firstToAnswer(at([...bad, `${good}/`], 'host_1', 'host_2'), systemTimers)).toBe(`${good}/`);
  // No token was sent: the identity of the server is not known yet.
  expect(asked).toEqual(['GET /readyz undefined']);
  expect(await firstToAnswer(at(bad.slice(1), 'host_1'), systemTimers)).toBeNull();
  // It is a host, but not the one of this address.
  expect(await firstToAnswer(at([good], 'host_2'), systemTimers)).toBeNull();
  expect(await firstToAnswer([], systemTimers)).toBeNull();
});
