import type { OutboundPolicy } from '../../core/net/outbound-policy.ts';
import { createUpstreamClient } from './upstream-client.ts';
import { createUndiciUpstream } from './upstream-http.ts';
import type { UpstreamHttp } from './upstream-http-port.ts';
import type { UserLimits } from './user-limits.ts';

/** The client that `GW_UPSTREAM_CLIENT` names; the former one can be chosen for one release. */
export function createUpstream(
  client: 'own' | 'undici',
  policy: OutboundPolicy,
  limits?: UserLimits,
): UpstreamHttp {
  return client === 'undici' ? createUndiciUpstream(policy, limits) : createUpstreamClient(policy, limits);
}
