import { describe, expect, test } from 'vitest';
import { readNetworks } from '../../../src/core/net/network.ts';
import type { Endpoint } from '../../../src/core/net/outbound-policy.ts';
import { decideOutbound, outboundPolicy } from '../../../src/core/net/outbound-policy.ts';

const own: Endpoint[] = [
  { address: '127.0.0.1', port: 5432 },
  { address: '10.0.0.5', port: 6379 },
  { address: '0.0.0.0', port: 8080 },
];
const publicOnly = outboundPolicy('public-only', readNetworks('10.20.0.0/16,fd12::/16'), own);
const allowPrivate = outboundPolicy('allow-private', [], own);

// address, port, public-only, allow-private (null: allowed)
test.each([
  ['1.1.1.1', 443, null, null],
  ['2606:4700::1111', 443, null, null],
  ['64:ff9b::101:101', 443, null, null],
  ['10.1.2.3', 443, 'private-address', null],
  ['10.20.3.4', 8000, null, null],
  ['::ffff:10.20.3.4', 8000, null, null],
  ['192.168.1.1', 80, 'private-address', null],
  ['127.0.0.1', 11434, 'private-address', null],
  ['::1', 11434, 'private-address', null],
  ['169.254.3.4', 80, 'link-local-address', 'link-local-address'],
  ['169.254.42.42', 80, 'link-local-address', 'link-local-address'],
  ['fe80::1', 80, 'link-local-address', 'link-local-address'],
  ['fe80::1%eth0', 80, 'link-local-address', 'link-local-address'],
  ['febf::1', 80, 'link-local-address', 'link-local-address'],
  ['::ffff:169.254.42.42', 80, 'link-local-address', 'link-local-address'],
  ['64:ff9b::a9fe:2a2a', 80, 'link-local-address', 'link-local-address'],
  ['2002:a9fe:2a2a::', 80, 'link-local-address', 'link-local-address'],
  ['100.64.0.1', 443, 'private-address', null],
  ['fd12::1', 443, null, null],
  ['fd13::1', 443, 'private-address', null],
  ['198.18.0.1', 443, 'private-address', null],
  ['64:ff9b::a00:1', 443, 'private-address', null],
  ['2002:a00:1::', 443, 'private-address', null],
  ['0.0.0.0', 80, 'unroutable-address', 'unroutable-address'],
  ['::', 80, 'unroutable-address', 'unroutable-address'],
  ['224.0.0.1', 80, 'unroutable-address', 'unroutable-address'],
  ['255.255.255.255', 80, 'unroutable-address', 'unroutable-address'],
  ['not-an-address', 80, 'unroutable-address', 'unroutable-address'],
  ['169.254.169.254', 80, 'metadata-address', 'metadata-address'],
  ['::ffff:a9fe:a9fe', 80, 'metadata-address', 'metadata-address'],
  ['64:ff9b::a9fe:a9fe', 80, 'metadata-address', 'metadata-address'],
  ['fd00:ec2::254', 80, 'metadata-address', 'metadata-address'],
  ['fd00:c1::a9fe:a9fe', 80, 'metadata-address', 'metadata-address'],
  ['127.0.0.1', 5432, 'own-endpoint', 'own-endpoint'],
  ['127.0.0.9', 5432, 'own-endpoint', 'own-endpoint'],
  ['::1', 5432, 'own-endpoint', 'own-endpoint'],
  ['::ffff:127.0.0.1', 5432, 'own-endpoint', 'own-endpoint'],
  ['127.0.0.1', 8080, 'own-endpoint', 'own-endpoint'],
  ['10.0.0.5', 6379, 'own-endpoint', 'own-endpoint'],
  ['::ffff:10.0.0.5', 6379, 'own-endpoint', 'own-endpoint'],
  ['64:ff9b::a00:5', 6379, 'own-endpoint', 'own-endpoint'],
  ['2002:a00:5::', 6379, 'own-endpoint', 'own-endpoint'],
  ['10.0.0.5', 6380, 'private-address', null],
])('%s port %i: %s when public only, %s when private is allowed', (address, port, strict, open) => {
  expect(decideOutbound(address, port, publicOnly, true)).toBe(strict);
  expect(decideOutbound(address, port, allowPrivate, true)).toBe(open);
});

describe("an operator's vendor address", () => {
  test.each(['10.1.2.3', '127.0.0.1', '::1', '1.1.1.1', '100.64.0.1'])('may be %s', (address) => {
    expect(decideOutbound(address, 5432, publicOnly, false)).toBeNull();
  });

  test.each(['169.254.169.254', '100.100.100.200', '::ffff:169.254.170.2'])('may not be %s', (address) => {
    expect(decideOutbound(address, 80, allowPrivate, false)).toBe('metadata-address');
  });
});

describe('a link-local address', () => {
  // networks, and whether 169.254.42.42:80, fe80::1:80 and 169.254.169.254:80 are open with them
  test.each<[networks: string[], v4: boolean, v6: boolean]>([
    [[], false, false],
    [['0.0.0.0/0', '::/0'], false, false],
    [['169.254.42.42'], true, false],
    [['169.254.42.42/32'], true, false],
    [['169.254.0.0/16'], true, false],
    [['169.0.0.0/8', 'fe00::/8'], false, false],
    [['169.254.42.42:443'], false, false],
    [['169.254.42.42:80'], true, false],
    [['fe80::/10'], false, true],
    [['169.254.0.0/16', '169.254.169.254', 'fe80::/10', 'fe80::a9fe:a9fe'], true, true],
  ])('is opened by name only: %j', (networks, v4, v6) => {
    for (const mode of ['public-only', 'allow-private'] as const) {
      const policy = outboundPolicy(mode, readNetworks(networks.join()), own);
      for (const userAddress of [true, false]) {
        const decide = (address: string) => decideOutbound(address, 80, policy, userAddress);
        expect(decide('169.254.42.42')).toBe(v4 ? null : 'link-local-address');
        expect(decide('fe80::1')).toBe(v6 ? null : 'link-local-address');
        expect(decide('169.254.169.254')).toBe('metadata-address');
        expect(decide('fe80::a9fe:a9fe')).toBe('metadata-address');
      }
    }
  });
});

test('an allowed network never opens a metadata service or an own endpoint', () => {
  const wide = outboundPolicy('public-only', readNetworks('0.0.0.0/0,::/0'), own);
  expect(decideOutbound('169.254.169.254', 80, wide, true)).toBe('metadata-address');
  expect(decideOutbound('10.0.0.5', 6379, wide, true)).toBe('own-endpoint');
  expect(decideOutbound('10.0.0.6', 6379, wide, true)).toBeNull();
});

// network, then an address and port that it opens, then one that stays shut
test.each<[string, [string, number], [string, number]]>([
  ['10.20.0.0/16:8000', ['10.20.3.4', 8000], ['10.20.3.4', 8001]],
  ['10.20.0.0/16:8000', ['::ffff:10.20.3.4', 8000], ['10.21.0.1', 8000]],
  ['10.20.3.4:8000', ['10.20.3.4', 8000], ['10.20.3.5', 8000]],
  ['[fd12::/16]:8000', ['fd12::1', 8000], ['fd12::1', 443]],
  ['[fd12::1]:8000', ['fd12::1', 8000], ['fd12::2', 8000]],
  ['fd12::/16:8000', ['fd12::1', 8000], ['fd12::1', 22]],
  [' 10.20.0.0/16:1 ', ['10.20.3.4', 1], ['10.20.3.4', 65535]],
  ['10.20.0.0/16', ['10.20.3.4', 22], ['10.21.3.4', 22]],
  ['[fd12::/16]', ['fd12::1', 22], ['fd13::1', 22]],
  // Without a prefix length a colon belongs to the address.
  ['fd12::8000', ['fd12::8000', 443], ['fd12::', 8000]],
])('the network %s opens %s and not %s', (network, open, shut) => {
  const policy = outboundPolicy('public-only', readNetworks(network), own);
  expect(decideOutbound(...open, policy, true)).toBeNull();
  expect(decideOutbound(...shut, policy, true)).toBe('private-address');
});

test.each([
  '10.0.0.0/99',
  '10.0.0.0/8:0',
  '10.0.0.0/8:65536',
  '10.0.0.0/8:',
  '10.0.0.0/8:80:81',
  '10.0.0.0/8:http',
  '[10.0.0.0/8',
  '[fd00::/8]8000',
  '[]:8000',
  ':8000',
  'model.example:8000',
])('names the network %s, which cannot be read', (network) => {
  expect(() => readNetworks(`10.0.0.0/8,${network}`)).toThrow(`"${network}"`);
});
