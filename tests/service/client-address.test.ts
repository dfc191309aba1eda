// The address that a request comes from: a header counts only if trusted proxies wrote it.
import { expect, test } from 'vitest';
import { clientAddress, networkOf, trustProxies } from '../../src/service/access/client-address.js';

const trusted = trustProxies(['10.0.0.0/8', '192.0.2.1', 'fd00::/8', '2001:db8::1']);

test.each([
  ['no header', '10.0.0.1', undefined, '10.0.0.1'],
  ['an untrusted peer', '203.0.113.5', '198.51.100.1', '203.0.113.5'],
  ['a trusted peer', '10.0.0.1', '198.51.100.1', '198.51.100.1'],
  ['what the client wrote itself', '10.0.0.1', '127.0.0.1, 198.51.100.1', '198.51.100.1'],
  ['several proxies', '10.0.0.1', '1.2.3.4, 198.51.100.1, 192.0.2.1, 10.9.9.9', '198.51.100.1'],
  ['nothing but proxies', '10.0.0.1', '10.0.0.2, 10.0.0.3', '10.0.0.2'],
  ['nonsense from the proxy', '10.0.0.1', '198.51.100.1, unknown', '10.0.0.1'],
  ['nonsense before the client', '10.0.0.1', '<script>, 198.51.100.1', '198.51.100.1'],
  ['a port', '10.0.0.1', '198.51.100.1:4711', '198.51.100.1'],
  ['IPv6 with a port', '10.0.0.1', '[2001:DB8::7]:4711', '2001:db8::7'],
  ['IPv4 in IPv6', '::ffff:10.0.0.1', '::ffff:198.51.100.1', '198.51.100.1'],
  ['a zone', 'fd00::1%eth0', '2001:db8::9', '2001:db8::9'],
  ['an empty header', '10.0.0.1', '', '10.0.0.1'],
  ['no peer', undefined, '198.51.100.1', 'unknown'],
])('%s', (_what, peer, header, address) => {
  expect(clientAddress(peer, header, trusted)).toBe(address);
});

test('without trusted proxies no header is believed, and a long one is cut off', () => {
  expect(clientAddress('127.0.0.1', '198.51.100.1', trustProxies([]))).toBe('127.0.0.1');
  expect(clientAddress('10.0.0.1', Array.from({ length: 5000 }, () => '10.0.0.2').join(','), trusted)).toBe('10.0.0.2');
});

test('an IPv6 client is counted by its /64, an IPv4 client by its address', () => {
  expect(['2001:db8::7', '2001:db8:0:0:ffff::1', '2001:db8:0:1::7', '::1', '198.51.100.1'].map(networkOf)).toEqual([
    '2001:db8:0:0::/64',
    '2001:db8:0:0::/64',
    '2001:db8:0:1::/64',
    '0:0:0:0::/64',
    '198.51.100.1',
  ]);
});

test.each(['999.1.1.1', '10.0.0.0/33', 'fd00::/129', 'abc', '1.2.3', ':::/8', ''])(
  'the trusted proxy %j is refused with an example',
  (network) => {
    expect(() => trustProxies([network])).toThrow(
      /trusted_proxies: .* is not an address or network; write 10\.0\.0\.5/,
    );
  },
);
