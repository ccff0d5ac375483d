import type { UpstreamCall } from '../../chat/ports.ts';
import type { Egress } from '../../core/net/egress.ts';
import { mayPassProxies } from '../../core/net/egress.ts';

/** To one origin, through proxies or not. */
export interface Way {
  /** Tells it from the others. */
  readonly name: string;
  readonly origin: string;
  readonly mayPassProxies: boolean;
}

/** Calls that may pass a proxy share no socket with those that may not: a socket keeps the way it was made. */
export function wayOf({ origin, residencyBound }: UpstreamCall, egress: Egress): Way {
  return mayPassProxies(egress, residencyBound)
    ? { name: origin, origin, mayPassProxies: true }
    : { name: `${origin} past proxies`, origin, mayPassProxies: false };
}
