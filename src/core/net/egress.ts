import type { Residency, ResidencyBound } from '../request/residency.ts';
import { residencyAllows } from '../request/residency.ts';
import type { EgressProxy } from './egress-proxy.ts';
import type { NoProxy } from './no-proxy.ts';
import { isBypassed } from './no-proxy.ts';

/** By which way providers and users' endpoints are reached (docs/decisions/0021). */
export interface Egress {
  /** For `https` origins; null: directly. */
  readonly https: EgressProxy | null;
  /** For `http` ones, which only private addresses may be. */
  readonly http: EgressProxy | null;
  readonly bypass: NoProxy;
  /** Where the proxies stand, by the operator's word. */
  readonly residency: Residency;
}

export const directEgress: Egress = { https: null, http: null, bypass: [], residency: 'global' };

/** Where a connection is to go; the host without brackets. */
export interface EgressTarget {
  readonly protocol: string;
  readonly host: string;
  readonly port: number;
}

/** The proxy for a host as it is named; null: it is reached directly. */
export function proxyFor(egress: Egress, { protocol, host, port }: EgressTarget): EgressProxy | null {
  const proxy = protocol === 'https:' ? egress.https : egress.http;
  return proxy === null || isBypassed(egress.bypass, host, port) ? null : proxy;
}

/** Whether a request that is so bound may pass the proxies, where there are any. */
export function mayPassProxies(egress: Egress, bound: ResidencyBound): boolean {
  return (egress.https === null && egress.http === null) || residencyAllows(bound, egress.residency);
}

/** Where the proxies listen: ours, as stores are, so that no user names them. */
export function proxyEndpoints({ https, http }: Egress): { readonly host: string; readonly port: number }[] {
  return [https, http].flatMap((proxy) => (proxy === null ? [] : [{ host: proxy.host, port: proxy.port }]));
}
