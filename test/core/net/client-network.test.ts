import fc from 'fast-check';
import { expect, test } from 'vitest';
import { clientAddress, clientNetwork, siteNetwork } from '../../../src/core/net/client-network.ts';

// as it came, the address, whom a limit counts
test.each([
  ['203.0.113.7', '203.0.113.7', '203.0.113.7'],
  [' 203.0.113.7 ', '203.0.113.7', '203.0.113.7'],
  ['203.0.113.7:50412', '203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7', '203.0.113.7'],
  ['::ffff:cb00:7107', '203.0.113.7', '203.0.113.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:DB8:1:2::', '2001:db8:1:2::', '2001:db8:1:2::/64'],
  ['[2001:db8:1:2::9]:443', '2001:db8:1:2::9', '2001:db8:1:2::/64'],
  ['fe80::1%eth0', 'fe80::1', 'fe80:0:0:0::/64'],
  ['::1', '::1', '0:0:0:0::/64'],
  ['2001:db8:1:3::1', '2001:db8:1:3::1', '2001:db8:1:3::/64'],
  ['', 'unknown', 'unknown'],
  ['unknown', 'unknown', 'unknown'],
  ['_hidden', 'unknown', 'unknown'],
  ['203.0.113', 'unknown', 'unknown'],
  ['203.0.113.7, 10.0.0.1', 'unknown', 'unknown'],
  ['gw_secret', 'unknown', 'unknown'],
])('%j is %s, counted as %s', (text, address, network) => {
  expect(clientAddress(text)).toBe(address);
  expect(clientNetwork(text)).toBe(network);
});

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['64:ff9b::203.0.113.7', '203.0.113.7'],
  ['2001:db8:1:2::9', '2001:db8:1::/48'],
  ['2001:db8:1:ffff::', '2001:db8:1::/48'],
  ['2001:db8:2::', '2001:db8:2::/48'],
])('the site of %s is %s', (address, network) => {
  expect(siteNetwork(address)).toBe(network);
});

test('all addresses of a /64 are one client, those of the next another', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (host) => {
      const groups = [48n, 32n, 16n, 0n].map((shift) => ((host >> shift) & 0xffffn).toString(16));
      expect(clientNetwork(`2001:db8:0:1:${groups.join(':')}`)).toBe('2001:db8:0:1::/64');
      expect(clientNetwork(`2001:db8:0:2:${groups.join(':')}`)).toBe('2001:db8:0:2::/64');
    }),
  );
});

test('any text has a network, and none of it is kept that is no address', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(clientNetwork(text)).toMatch(/^(unknown|[0-9.]+|[0-9a-f:]+::\/64)$/);
    }),
  );
});
