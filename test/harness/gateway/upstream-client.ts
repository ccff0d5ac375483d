import { createUpstream as create } from '../../../src/adapters/upstream/create-upstream.ts';
import type { UpstreamHttp } from '../../../src/adapters/upstream/upstream-http-port.ts';
import type { UserSocketLimits } from '../../../src/adapters/upstream/user-socket-limits.ts';
import type { OutboundPolicy } from '../../../src/core/net/outbound-policy.ts';

/** The client under test: the gateway's own, or the one that the setting of the same name chooses. */
export function createUpstream(policy: OutboundPolicy, limits?: UserSocketLimits): UpstreamHttp {
  return create(process.env['GW_UPSTREAM_CLIENT'] === 'undici' ? 'undici' : 'own', policy, limits);
}
