import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../src/dev/free-port.ts';
import type { TestDatabase } from '../servers/postgres.ts';
import { createDatabase } from '../servers/postgres.ts';
import type { VendorPack } from '../vendors/vendor-pack.ts';
import { startVendorPack } from '../vendors/vendor-pack.ts';
import type { GatewayOptions, GatewayUnderTest } from './start-gateway.ts';
import { sealingKeys, startGateway } from './start-gateway.ts';

/** Everything that outlives a gateway process: address, database, sealing key, spool, vendors. */
export interface World {
  readonly url: string;
  readonly database: TestDatabase;
  readonly vendors: VendorPack;
  readonly spoolDir: string;
  /** Starts a gateway at `url`; the one before must be gone. */
  start(env?: GatewayOptions['env']): Promise<GatewayUnderTest>;
  /** Starts one more, at an address of its own. */
  startReplica(env?: GatewayOptions['env']): Promise<GatewayUnderTest>;
  /** Ends the gateways that are left; none starts any more, also of a test that goes on beyond its time. */
  close(): Promise<void>;
}

export async function makeWorld(given?: TestDatabase): Promise<World> {
  const [database, vendors, port, folder] = await Promise.all([
    given ?? createDatabase(),
    startVendorPack(),
    freePort(),
    mkdtemp(join(tmpdir(), 'model-gateway-test-')),
  ]);
  const spoolDir = join(folder, 'spool');
  const kept = { GW_SEALING_KEYS: sealingKeys(), GW_SPOOL_DIR: spoolDir };
  const started: Promise<GatewayUnderTest>[] = [];
  let closed = false;
  const start = (env: GatewayOptions['env']) => {
    if (closed) return Promise.reject(new Error('this world is closed'));
    const gateway = startGateway({ database, vendors, env: { ...kept, ...env } });
    started.push(gateway);
    return gateway;
  };
  return {
    url: `http://127.0.0.1:${port}`,
    database,
    vendors,
    spoolDir,
    start: (env) => start({ PORT: String(port), ...env }),
    startReplica: (env) => start(env),
    close: async () => {
      closed = true;
      // One that did not start has left nothing.
      for (const gateway of await Promise.allSettled(started))
        if (gateway.status === 'fulfilled') await gateway.value.stop('SIGKILL');
      await vendors.close();
      if (given === undefined) await database.drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Ends a gateway as the kernel or an operator would, without the courtesy of `stop`; its exit code. */
export async function endBy(signal: NodeJS.Signals, gateway: GatewayUnderTest): Promise<number | null> {
  process.kill(gateway.pid, signal);
  const code = await gateway.exited;
  await gateway.stop();
  return code;
}
