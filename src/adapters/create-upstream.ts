import type { OutboundPolicy } from '../core/outbound-policy.ts';
import { createUpstreamClient } from './upstream/upstream-client.ts';
import type { UpstreamHttp } from './upstream/upstream-http-port.ts';
import { createUndiciUpstream } from './upstream-http.ts';
import type { UserLimits } from './upstream-pools.ts';

/** The client that `GW_UPSTREAM_CLIENT` names; the former one can be chosen for one release. */
export function createUpstream(
  client: 'own' | 'undici',
  policy: OutboundPolicy,
  limits?: UserLimits,
): UpstreamHttp {
  return client === 'undici' ? createUndiciUpstream(policy, limits) : createUpstreamClient(policy, limits);
}
