// Determines the network address of a client. X-Forwarded-For is trusted only as far as it was written by proxies in
// the settings: read from the right, the first hop that is not a trusted proxy is the client.
import { BlockList, isIP } from 'node:net';
import { refusal } from '../../run/request-error.js';

// Limits the chain of proxies: further hops were written by the client.
const MOST_HOPS = 32;
const IPV6_GROUPS = 8;
const NETWORK_GROUPS = 4;

export type IsTrusted = (address: string) => boolean;

// Addresses, and networks in CIDR form.
export function trustProxies(networks: readonly string[]): IsTrusted {
  const list = new BlockList();
  for (const network of networks) addNetwork(list, network);
  return (address) => isIP(address) !== 0 && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

function addNetwork(list: BlockList, network: string): void {
  const [address = '', prefix] = network.split('/');
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
  const longest = family === 'ipv6' ? 128 : 32;
  if (isIP(address) === 0 || Number(prefix ?? 0) > longest) {
    const example = '10.0.0.5 or 10.0.0.0/8';
    throw refusal('INVALID_ARGUMENT.network', { network, example });
  }
  if (prefix === undefined) list.addAddress(address, family);
  else list.addSubnet(address, Number(prefix), family);
}

export function clientAddress(peer: string | undefined, forwarded: string | undefined, isTrusted: IsTrusted): string {
  let client = normalise(peer ?? '') ?? 'unknown';
  const hops = forwarded?.split(',').slice(-MOST_HOPS) ?? [];
  while (hops.length > 0 && isTrusted(client)) {
    const hop = normalise(hops.pop() ?? '');
    if (hop === null) return client;
    client = hop;
  }
  return client;
}

// The key by which failed attempts are counted: an IPv6 client can send from a whole /64.
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  return `${expand(address).slice(0, NETWORK_GROUPS).join(':')}::/64`;
}

// Returns the address without port, brackets, zone or IPv6 form of IPv4; null if the text is not an address.
function normalise(text: string): string | null {
  const bare = text
    .trim()
    .replace(/^\[(.*)\](?::\d+)?$/, '$1')
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
    .replace(/%.*$/, '')
    .replace(/^::ffff:(?=\d+\.)/i, '')
    .toLowerCase();
  return isIP(bare) === 0 ? null : bare;
}

function expand(address: string): string[] {
  const [head = '', tail] = address
    .replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...bytes: string[]) => {
      const [a = 0, b = 0, c = 0, d = 0] = bytes.slice(0, 4).map(Number);
      return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
    })
    .split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros =
    tail === undefined ? [] : Array.from({ length: Math.max(0, IPV6_GROUPS - left.length - right.length) }, () => '0');
  return [...left, ...zeros, ...right].map((group) => Number.parseInt(group, 16).toString(16));
}
