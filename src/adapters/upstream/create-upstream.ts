import type { OutboundPolicy } from '../../core/net/outbound-policy.ts';
import { createUndiciUpstream } from './undici-upstream.ts';
import { createUpstreamClient } from './upstream-client.ts';
import type { UpstreamHttp } from './upstream-http-port.ts';
import type { UserSocketLimits } from './user-socket-limits.ts';

/** The client that `GW_UPSTREAM_CLIENT` names; the former one can be chosen for one release. */
export function createUpstream(
  client: 'own' | 'undici',
  policy: OutboundPolicy,
  limits: UserSocketLimits,
): UpstreamHttp {
  return client === 'undici' ? createUndiciUpstream(policy, limits) : createUpstreamClient(policy, limits);
}
