import type { Egress } from './egress.ts';
import { directEgress } from './egress.ts';
import {
  canonicalAddress,
  classifyAddress,
  isLinkLocalNetwork,
  isMetadataAddress,
  reachedAddresses,
} from './ip-class.ts';
import type { Network } from './network.ts';
import { isInNetwork } from './network.ts';

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
  readonly allowedNetworks: readonly Network[];
  /** Our own Postgres, Redis, Kubernetes API and listeners: no user may speak to them through us. */
  readonly ownEndpoints: readonly Endpoint[];
  /** By which way they go there. */
  readonly egress: Egress;
}

export type OutboundRefusal =
  | 'metadata-address'
  | 'link-local-address'
  | 'own-endpoint'
  | 'private-address'
  | 'unroutable-address';

export const outboundPolicy = (
  mode: OutboundPolicy['mode'],
  allowedNetworks: readonly Network[],
  ownEndpoints: readonly Endpoint[],
  egress: Egress = directEgress,
): OutboundPolicy => ({ mode, allowedNetworks, ownEndpoints, egress });

function isAllowed(address: string, port: number, networks: readonly Network[]): boolean {
  return networks.some((network) => isInNetwork(address, port, network));
}

/** An own listener on loopback or on every interface answers on all of 127.0.0.0/8 and on ::1. */
function isOwn(reached: readonly string[], port: number, own: Endpoint): boolean {
  if (own.port !== port) return false;
  const ownAddress = canonicalAddress(own.address) ?? '';
  if (reached.includes(ownAddress)) return true;
  const ownClass = classifyAddress(own.address);
  const answersOnLoopback = ownClass === 'loopback' || ownClass === 'unroutable';
  return answersOnLoopback && reached.some((address) => classifyAddress(address) === 'loopback');
}

/**
 * Clouds serve credentials and user data in this range, some at addresses of their own (Scaleway: 169.254.42.42).
 * Only a network of the list that lies in it opens it: 0.0.0.0/0 was not written with it in mind.
 */
function isShutLinkLocal(reached: readonly string[], port: number, policy: OutboundPolicy): boolean {
  const linkLocal = reached.filter((address) => classifyAddress(address) === 'link-local');
  if (linkLocal.length === 0) return false;
  const opened = policy.allowedNetworks.filter(({ cidr }) => isLinkLocalNetwork(cidr));
  return !linkLocal.every((address) => isAllowed(address, port, opened));
}

/**
 * Whether a connection to a resolved address may be opened: null, or why not. `userAddress` says that a
 * user chose the address (a self_hosted base_url); for an operator's vendor address only the rules about
 * metadata services and link-local addresses apply. Text that is no IP address is refused.
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
  const reached = reachedAddresses(address);
  if (isShutLinkLocal(reached, port, policy)) return 'link-local-address';
  if (!userAddress) return null;
  if (ipClass === 'unroutable') return 'unroutable-address';
  if (policy.ownEndpoints.some((own) => isOwn(reached, port, own))) return 'own-endpoint';
  if (policy.mode === 'allow-private' || ipClass === 'public') return null;
  return isAllowed(address, port, policy.allowedNetworks) ? null : 'private-address';
}
