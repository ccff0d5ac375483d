import ipaddr from 'ipaddr.js';
import { canonicalAddress, reachedAddresses } from './ip-class.ts';

/** Some proxies write the client's port into X-Forwarded-For. */
const withPort = /^(?:\[([^\]]+)\]|(\d+\.\d+\.\d+\.\d+))(?::\d+)?$/;
/** Eight groups of 16 bits; the first four are the network that one customer is given (RFC 6177, RFC 7934). */
const clientGroups = 4;
/** And the first three what a site gets, and anybody who asks for more than one network (RFC 6177, section 2). */
export const siteGroups = 3;

/** What stands for an address that cannot be read: X-Forwarded-For may hold any text. */
const unknownClient = 'unknown';

/** One spelling per client address, without port and zone; `unknown` for text that is no address. */
export function clientAddress(text: string): string {
  const [, v6, v4] = withPort.exec(text.trim()) ?? [];
  return canonicalAddress(v6 ?? v4 ?? text.trim()) ?? unknownClient;
}

function networkOf(address: string, groups: number): string {
  if (!address.includes(':')) return address;
  const first = ipaddr.IPv6.parse(address).parts.slice(0, groups);
  return `${first.map((group) => group.toString(16)).join(':')}::/${16 * groups}`;
}

/**
 * Whom a limit per address counts: an IPv4 address, or the /64 of an IPv6 address, of which any machine has 2^64.
 * An IPv4 address in IPv6 spelling is the IPv4 address.
 */
export function clientNetwork(text: string): string {
  return networkOf(clientAddress(text), clientGroups);
}

/**
 * Whose an address is where one owner may have many: the IPv4 address, also one behind a translation prefix, or the
 * IPv6 /48.
 */
export function siteNetwork(text: string): string {
  return networkOf(reachedAddresses(clientAddress(text)).at(-1) ?? unknownClient, siteGroups);
}

/** Tells a connection from all others of the process: one local port may serve connections to several servers. */
export function connectionName(localPort: number, address: string, port: number): string {
  return `${localPort} ${peerName(address, port)}`;
}

/** Tells a connection from all others of a listener; one spelling, as `clientAddress`. */
export function peerName(address: string, port: number): string {
  return `${clientAddress(address)} ${port}`;
}
