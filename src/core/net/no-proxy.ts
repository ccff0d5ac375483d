import { classifyAddress } from './ip-class.ts';
import type { Network } from './network.ts';
import { isInNetwork, parseNetwork } from './network.ts';
import { isLocalhostName } from './self-hosted-url.ts';

/** What is reached without a proxy, compiled from `NO_PROXY`. */
export type NoProxy = readonly NoProxyRule[];

type NoProxyRule =
  | { readonly kind: 'all' }
  | { readonly kind: 'network'; readonly network: Network }
  | {
      readonly kind: 'name';
      /** Lower case. */
      readonly name: string;
      /** Only what lies below it, as where it was written with a leading dot. */
      readonly belowOnly: boolean;
      /** Null: every port. */
      readonly port: number | null;
    };

/** A proxy setting that cannot be used. The message continues a sentence that begins with the setting's name. */
export class EgressError extends Error {}

const nameForm = /^(\*?\.)?((?:[a-z0-9_-]+\.)*[a-z0-9_-]+)\.?(?::(\d{1,5}))?$/;
/** What ends in a number is an address (as in URLs), and those that are none would never match. */
const numericEnd = /(?:^|\.)\d+$/;
const largestPort = 65_535;
/** IPv4 in the clothes of IPv6: addresses are compared as the IPv4 ones they are, and it would match none. */
const mappedNetwork = /^\[?::ffff:[^/]*\//i;

function readRule(entry: string): NoProxyRule | null {
  if (entry === '*') return { kind: 'all' };
  if (mappedNetwork.test(entry)) return null;
  const network = parseNetwork(entry);
  if (network !== null) return { kind: 'network', network };
  const [, dot, name, portText] = nameForm.exec(entry.toLowerCase()) ?? [];
  if (name === undefined || numericEnd.test(name)) return null;
  const port = portText === undefined ? null : Number(portText);
  if (port !== null && (port < 1 || port > largestPort)) return null;
  return { kind: 'name', name, belowOnly: dot !== undefined, port };
}

/**
 * Reads `NO_PROXY`: entries between commas or spaces, each `*`, a name (which stands for all names below it too),
 * `.suffix` or `*.suffix` (for those only), an address or a network, and a port of any of them. Throws EgressError
 * naming the entry that cannot be read: left out it would send through the proxy what is meant to stay inside.
 */
export function parseNoProxy(text: string): NoProxy {
  const entries = text.split(/[\s,]+/).filter((entry) => entry !== '');
  return entries.map((entry) => {
    const rule = readRule(entry);
    if (rule !== null) return rule;
    throw new EgressError(
      `has the entry ${JSON.stringify(entry)}, which is no name, .suffix, address, network (10.0.0.0/8), port of one, or *.`,
    );
  });
}

/**
 * Whether a host, a name or an IP literal without brackets, is reached without a proxy. This host always is: behind
 * a proxy its names and addresses would be the proxy's own.
 */
export function isBypassed(rules: NoProxy, host: string, port: number): boolean {
  const ipClass = classifyAddress(host);
  if (ipClass !== null) {
    if (ipClass === 'loopback' || ipClass === 'link-local') return true;
    return rules.some(
      (rule) => rule.kind === 'all' || (rule.kind === 'network' && isInNetwork(host, port, rule.network)),
    );
  }
  const asked = host.toLowerCase().replace(/\.$/, '');
  if (isLocalhostName(asked)) return true;
  return rules.some((rule) => {
    if (rule.kind !== 'name') return rule.kind === 'all';
    if (rule.port !== null && rule.port !== port) return false;
    return asked.endsWith(`.${rule.name}`) || (!rule.belowOnly && asked === rule.name);
  });
}
