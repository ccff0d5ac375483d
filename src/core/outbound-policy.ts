import type { Cidr } from './ip-class.ts';
import { canonicalAddress, classifyAddress, isInCidr, isMetadataAddress, parseCidr } from './ip-class.ts';

export interface Endpoint {
  /** An IP literal. */
  readonly address: string;
  readonly port: number;
}

/** What the connections of this process may reach. Decided on the resolved address, when it is connected to. */
export interface OutboundPolicy {
  /** `public-only` for deployments whose users do not trust each other or are not trusted by the operator. */
  readonly mode: 'public-only' | 'allow-private';
  /** Exceptions to `public-only`. */
  readonly allowedCidrs: readonly Cidr[];
  /** Our own Postgres, Redis, Kubernetes API and listeners: no user may speak to them through us. */
  readonly ownEndpoints: readonly Endpoint[];
}

export type OutboundRefusal = 'metadata-address' | 'own-endpoint' | 'private-address' | 'unroutable-address';

/** Compiles the operator's settings. Throws RangeError naming the CIDR that cannot be read. */
export function outboundPolicy(
  mode: OutboundPolicy['mode'],
  allowedCidrs: readonly string[],
  ownEndpoints: readonly Endpoint[],
): OutboundPolicy {
  const cidrs = allowedCidrs.map((text) => {
    const cidr = parseCidr(text);
    if (cidr === null) throw new RangeError(`"${text.trim()}" is not a CIDR such as 10.0.0.0/8 or fd00::/8.`);
    return cidr;
  });
  return { mode, allowedCidrs: cidrs, ownEndpoints };
}

/** An own listener on loopback or on every interface answers on all of 127.0.0.0/8 and on ::1. */
function isOwn(address: string, port: number, own: Endpoint): boolean {
  if (own.port !== port) return false;
  if (canonicalAddress(own.address) === canonicalAddress(address)) return true;
  const ownClass = classifyAddress(own.address);
  return classifyAddress(address) === 'loopback' && (ownClass === 'loopback' || ownClass === 'unroutable');
}

/**
 * Whether a connection to a resolved address may be opened: null, or why not. `userAddress` says that a
 * user chose the address (a self_hosted base_url); for an operator's vendor address only the rule about
 * metadata services applies. Text that is no IP address is refused.
 */
export function decideOutbound(
  address: string,
  port: number,
  policy: OutboundPolicy,
  userAddress: boolean,
): OutboundRefusal | null {
  const ipClass = classifyAddress(address);
  if (ipClass === null) return 'unroutable-address';
  if (isMetadataAddress(address)) return 'metadata-address';
  if (!userAddress) return null;
  if (ipClass === 'unroutable') return 'unroutable-address';
  if (policy.ownEndpoints.some((own) => isOwn(address, port, own))) return 'own-endpoint';
  if (policy.mode === 'allow-private' || ipClass === 'public') return null;
  return policy.allowedCidrs.some((cidr) => isInCidr(address, cidr)) ? null : 'private-address';
}
