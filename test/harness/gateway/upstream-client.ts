import { createUpstream as create } from '../../../src/adapters/upstream/create-upstream.ts';
import type { UpstreamHttp } from '../../../src/adapters/upstream/upstream-http-port.ts';
import type { UserSocketLimits } from '../../../src/adapters/upstream/user-socket-limits.ts';
import type { OutboundPolicy } from '../../../src/core/net/outbound-policy.ts';

/** The client under test, of gateways too: `GW_UPSTREAM_CLIENT=undici npm test` is a run with the former one. */
export const testsUndici = (): boolean => process.env['GW_UPSTREAM_CLIENT'] === 'undici';

/** What the log says of the address of a provider of these tests: undici does not show its connections. */
export const toldAddressClass = (): 'loopback' | null => (testsUndici() ? null : 'loopback');

/** As a system of old gives a process. */
export const manySockets: UserSocketLimits = { sockets: 256, perUser: 64 };

export function createUpstream(policy: OutboundPolicy, limits = manySockets): UpstreamHttp {
  return create(testsUndici() ? 'undici' : 'own', policy, limits);
}
