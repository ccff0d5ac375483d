import type { GatewayOptions, GatewayUnderTest } from './start-gateway.ts';
import { startForTest, useGateway } from './use-gateway.ts';

type ReplicaOptions = Pick<GatewayOptions, 'env' | 'tables'>;

/** What another replica of the same deployment is started with: its stores and sealing keys, and these settings. */
function replicaOf(gateway: GatewayUnderTest, { env, tables }: ReplicaOptions): GatewayOptions {
  const { database, vendors } = gateway;
  const shared = {
    REDIS_URL: gateway.env['REDIS_URL'],
    GW_SEALING_KEYS: gateway.env['GW_SEALING_KEYS'],
  };
  return { database, vendors, env: { ...shared, ...env }, ...(tables !== undefined && { tables }) };
}

/** Another replica, for the tests of the file or `describe` that calls this after `useGateway`. */
export function useReplica(gateway: GatewayUnderTest, options: ReplicaOptions = {}): GatewayUnderTest {
  return useGateway(() => replicaOf(gateway, options));
}

/** Another replica that ends with the running test. */
export function startReplicaForTest(
  gateway: GatewayUnderTest,
  options: ReplicaOptions = {},
): Promise<GatewayUnderTest> {
  return startForTest(replicaOf(gateway, options));
}
