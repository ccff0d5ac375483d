import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { IpClass } from '../../../src/core/net/ip-class.ts';
import {
  canonicalAddress,
  classifyAddress,
  isInCidr,
  isMetadataAddress,
  parseCidr,
} from '../../../src/core/net/ip-class.ts';

// One row per entry of the IANA IPv4 and IPv6 special-purpose address registries, first and last address.
const specialRanges: [range: string, first: string, last: string, expected: IpClass][] = [
  ['this network', '0.0.0.0', '0.255.255.255', 'unroutable'],
  ['RFC 1918 ten', '10.0.0.0', '10.255.255.255', 'private'],
  ['shared address space', '100.64.0.0', '100.127.255.255', 'shared'],
  ['loopback', '127.0.0.0', '127.255.255.255', 'loopback'],
  ['link local', '169.254.0.0', '169.254.255.255', 'link-local'],
  ['RFC 1918 twelve', '172.16.0.0', '172.31.255.255', 'private'],
  ['IETF protocol assignments', '192.0.0.0', '192.0.0.255', 'reserved'],
  ['TEST-NET-1', '192.0.2.0', '192.0.2.255', 'reserved'],
  ['AS112-v4', '192.31.196.0', '192.31.196.255', 'reserved'],
  ['AMT', '192.52.193.0', '192.52.193.255', 'reserved'],
  ['6to4 relay anycast', '192.88.99.0', '192.88.99.255', 'reserved'],
  ['RFC 1918 sixteen', '192.168.0.0', '192.168.255.255', 'private'],
  ['direct delegation AS112', '192.175.48.0', '192.175.48.255', 'reserved'],
  ['benchmarking', '198.18.0.0', '198.19.255.255', 'reserved'],
  ['TEST-NET-2', '198.51.100.0', '198.51.100.255', 'reserved'],
  ['TEST-NET-3', '203.0.113.0', '203.0.113.255', 'reserved'],
  ['multicast', '224.0.0.0', '239.255.255.255', 'unroutable'],
  ['reserved', '240.0.0.0', '255.255.255.254', 'reserved'],
  ['limited broadcast', '255.255.255.255', '255.255.255.255', 'unroutable'],
  ['loopback v6', '::1', '::1', 'loopback'],
  ['unspecified v6', '::', '::', 'unroutable'],
  ['IPv4-compatible', '::2', '::ffff:ffff', 'reserved'],
  ['mapped private', '::ffff:10.0.0.0', '::ffff:10.255.255.255', 'private'],
  ['mapped loopback', '::ffff:127.0.0.1', '::ffff:7fff:ffff', 'loopback'],
  ['mapped link local', '::ffff:a9fe:0', '::ffff:a9fe:ffff', 'link-local'],
  ['mapped public', '::ffff:1.1.1.1', '::ffff:8.8.8.8', 'public'],
  ['IPv4-translated', '::ffff:0:0:0', '::ffff:0:ffff:ffff', 'reserved'],
  ['NAT64 of private', '64:ff9b::10.0.0.0', '64:ff9b::10.255.255.255', 'reserved'],
  ['NAT64 of loopback', '64:ff9b::7f00:1', '64:ff9b::7fff:ffff', 'reserved'],
  ['NAT64 of public', '64:ff9b::1.1.1.1', '64:ff9b::8.8.8.8', 'public'],
  ['local NAT64', '64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['discard only', '100::', '100::ffff:ffff:ffff:ffff', 'reserved'],
  ['Teredo', '2001::', '2001:0:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['protocol assignments v6', '2001:1::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['benchmarking v6', '2001:2::', '2001:2:0:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['AMT v6', '2001:3::', '2001:3:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['AS112-v6', '2001:4:112::', '2001:4:112:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['ORCHID', '2001:10::', '2001:1f:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['ORCHIDv2', '2001:20::', '2001:2f:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['drone remote id', '2001:30::', '2001:3f:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['documentation', '2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['6to4', '2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['6to4 of private', '2002:a00:1::', '2002:c0a8:101::1', 'reserved'],
  ['direct delegation AS112 v6', '2620:4f:8000::', '2620:4f:8000:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['documentation 2', '3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['segment routing', '5f00::', '5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['unique local', 'fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'private'],
  ['link local v6', 'fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'link-local'],
  ['site local', 'fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['multicast v6', 'ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'unroutable'],
  ['not yet given out', '4000::', 'f000::1', 'reserved'],
];

test.each(specialRanges)('%s: %s to %s is %s', (_range, first, last, expected) => {
  expect(classifyAddress(first)).toBe(expected);
  expect(classifyAddress(last)).toBe(expected);
});

// The neighbours of the ranges that matter most.
test.each([
  '1.1.1.1',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '169.253.255.255',
  '169.255.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '192.167.255.255',
  '192.169.0.0',
  '223.255.255.255',
  '2606:4700::1111',
  '2001:200::1',
  '2001:4860:4860::8888',
])('%s is public', (address) => {
  expect(classifyAddress(address)).toBe('public');
});

test.each([
  '',
  'localhost',
  '127.1',
  '0x7f.0.0.1',
  '2130706433',
  '010.0.0.1',
  '1.2.3',
  '[::1]',
  '::g',
  '1.2.3.4.5',
])('"%s" is no address', (text) => {
  expect(classifyAddress(text)).toBeNull();
  expect(canonicalAddress(text)).toBeNull();
  expect(isMetadataAddress(text)).toBe(false);
});

test('classifies a link-local address with a zone id', () => {
  expect(classifyAddress('fe80::1%eth0')).toBe('link-local');
});

test('gives every IPv4 address the class of its mapped form', () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      expect(classifyAddress(`::ffff:${address}`)).toBe(classifyAddress(address));
      expect(canonicalAddress(`::ffff:${address}`)).toBe(address);
    }),
  );
});

test('never takes an address outside of 2000::/3 and NAT64 for a public one', () => {
  fc.assert(
    fc.property(fc.ipV6(), (address) => {
      const canonical = canonicalAddress(address) ?? '';
      const expectedPublic = /^(?:[23]|64:ff9b::|\d+\.)/.test(canonical);
      if (!expectedPublic) expect(classifyAddress(address)).not.toBe('public');
    }),
  );
});

describe('metadata services', () => {
  test.each([
    '169.254.169.254',
    '169.254.170.2',
    '169.254.170.23',
    '100.100.100.200',
    '168.63.129.16',
    'fd00:ec2::254',
    'FD00:0EC2:0:0::0254',
    'fd00:ec2::23',
    'fd00:ec2::123',
    'fd20:ce::254',
    'fd00:42::42',
    'fd00:c1::a9fe:a9fe',
    'fd00:a9fe:a9fe::1',
    'fd00:100::100:200',
    '::ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
    '::a9fe:a9fe',
    '::ffff:0:a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b:1::a9fe:a9fe',
    '64:ff9b:1:a9fe:a9:fe00::',
    '2002:a9fe:a9fe::1',
    '2001:0:a9fe:a9fe::1',
    'fe80::a9fe:a9fe%eth0',
  ])('%s is one', (address) => {
    expect(isMetadataAddress(address)).toBe(true);
  });

  test.each([
    '169.254.169.253',
    '169.254.1.1',
    '10.0.0.1',
    '::1',
    'fd00:ec3::254',
    'fd00:42::43',
    '2606:4700::1111',
    '64:ff9b::101:101',
  ])('%s is none', (address) => {
    expect(isMetadataAddress(address)).toBe(false);
  });
});

test.each([
  ['10.0.0.0/8', '10.1.2.3', true],
  ['10.0.0.0/8', '11.0.0.1', false],
  ['10.0.0.0/8', '::ffff:10.1.2.3', true],
  ['10.0.0.0/8', 'fd00::1', false],
  [' fd00::/8 ', 'fd12::1', true],
  ['192.168.1.7', '192.168.1.7', true],
  ['192.168.1.7', '192.168.1.8', false],
  ['10.0.0.0/8', 'example.com', false],
])('network %s and address %s: %s', (network, address, expected) => {
  const cidr = parseCidr(network);
  expect(cidr !== null && isInCidr(address, cidr)).toBe(expected);
});

test.each(['', '10.0.0.0/33', 'example.com', '10.0.0.0/8/8', '0x0a.0.0.0'])('"%s" is no network', (text) => {
  expect(parseCidr(text)).toBeNull();
});
