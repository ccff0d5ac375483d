import { beforeEach, onTestFinished } from 'vitest';
import { untilReadyIs } from '../measure/fault-metrics.ts';
import { useStarted } from '../servers/use-started.ts';
import type { VendorName } from '../vendors/vendor-pack.ts';
import type { User } from './register.ts';
import { registerWithKeys } from './register.ts';
import type { GatewayOptions, GatewayUnderTest } from './start-gateway.ts';
import { startGateway } from './start-gateway.ts';

type LaterOptions = () => GatewayOptions | Promise<GatewayOptions>;

/**
 * A ready gateway for the tests of the file or `describe` that calls this; its vendors forget everything before each
 * test. Options that need what is started too are a function.
 */
export function useGateway(options: GatewayOptions | LaterOptions = {}): GatewayUnderTest {
  const gateway = useStarted(
    async () => startReady(typeof options === 'function' ? await options() : options),
    (started) => started.stop(),
  );
  beforeEach(() => gateway.vendors.clear());
  return gateway;
}

async function startReady(options: GatewayOptions): Promise<GatewayUnderTest> {
  const gateway = await startGateway(options);
  try {
    await untilReadyIs(gateway, 200);
    return gateway;
  } catch (error) {
    await gateway.stop();
    throw error;
  }
}

/** A user of that gateway for the same tests, with a key for each of these providers (all commercial ones by default). */
export function useUser(gateway: GatewayUnderTest, providers?: readonly VendorName[]): User {
  return useStarted(() => registerWithKeys(gateway.url, providers));
}

/** A ready gateway that ends with the running test. */
export async function startForTest(options: GatewayOptions = {}): Promise<GatewayUnderTest> {
  const gateway = await startUnreadyForTest(options);
  await untilReadyIs(gateway, 200);
  return gateway;
}

/** The same as soon as it listens: it may never be ready. */
export async function startUnreadyForTest(options: GatewayOptions = {}): Promise<GatewayUnderTest> {
  const gateway = await startGateway(options);
  onTestFinished(async () => {
    await gateway.stop();
  });
  return gateway;
}
