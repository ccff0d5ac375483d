import { parse } from 'yaml';
import { freePort } from '../../../src/dev/free-port.ts';
import { httpClient } from '../gateway/http-client.ts';
import type { User } from '../gateway/register.ts';
import type { GatewayUnderTest } from '../gateway/start-gateway.ts';
import { sealingKeys, startGateway } from '../gateway/start-gateway.ts';
import type { TablesInput } from '../gateway/tables.ts';
import type { CrashablePostgres } from '../servers/fault-postgres.ts';
import { startCrashablePostgres } from '../servers/fault-postgres.ts';
import type { OtlpReceiver } from '../servers/otlp-receiver.ts';
import { startOtlpReceiver } from '../servers/otlp-receiver.ts';
import type { RedisProcess } from '../servers/redis.ts';
import { startRedis } from '../servers/redis.ts';
import { ruleFiles } from './dashboards.ts';
import { registerUsers } from './demo-world.ts';
import { startKubeStandIn } from './kube-stand-in.ts';
import type { PrometheusProcess } from './prometheus.ts';
import { startPrometheus } from './prometheus.ts';
import type { DemoVendors } from './vendors.ts';
import { startDemoVendors } from './vendors.ts';

/** Two replicas with real stores, vendors that fail as told, demo load, and a Prometheus that watches them. */

const REPLICAS = 2;
const SCRAPE_SECONDS = 1;
const adminToken = 'an-admin-token-of-sufficient-length';
export const release = { cluster: 'here', namespace: 'models' } as const;

export interface World {
  readonly prometheus: PrometheusProcess;
  readonly vendors: DemoVendors;
  readonly collector: OtlpReceiver;
  readonly postgres: CrashablePostgres;
  /** One per replica; a restart replaces its entry. */
  readonly gateways: readonly GatewayUnderTest[];
  readonly users: readonly User[];
  readonly redis: RedisProcess;
  /** Tables as YAML, taken into use by all replicas. */
  writeTables(document: string): Promise<void>;
  /** Ends a replica and starts it anew at the same address, with the newest tables. */
  restart(replica: number): Promise<void>;
  close(): Promise<void>;
}

/** Starts all of it; `tables` is a document of routing tables. What was started is ended again when a part fails. */
export async function startWorld(program: string, tables: string): Promise<World> {
  const closers: (() => Promise<unknown>)[] = [];
  const started = async <T>(part: Promise<T>, close: (part: T) => Promise<unknown>): Promise<T> => {
    const value = await part;
    closers.push(() => close(value));
    return value;
  };
  const close = async () => {
    for (const end of closers.splice(0).reverse()) await end();
  };
  try {
    const postgres = await started(startCrashablePostgres(), (server) => server.close());
    const redis = await started(startRedis(), (server) => server.close());
    const vendors = await started(startDemoVendors(), (all) => all.close());
    const collector = await started(startOtlpReceiver(), (receiver) => receiver.close());
    const env = { ...collector.env, GW_SEALING_KEYS: sealingKeys(), GW_ADMIN_TOKEN: adminToken };
    const shared = { vendors: vendors.pack, database: postgres.database, redisUrl: redis.url };
    let current = tables;
    const gateways: GatewayUnderTest[] = [];
    const restarts: (() => Promise<GatewayUnderTest>)[] = [];
    for (let replica = 0; replica < REPLICAS; replica += 1) {
      const ports = { PORT: String(await freePort()), GW_ADMIN_PORT: String(await freePort()) };
      const start = () =>
        startGateway({ ...shared, tables: parse(current) as TablesInput, env: { ...env, ...ports } });
      restarts.push(start);
      gateways.push(await started(start(), () => gateways[replica]?.stop() ?? Promise.resolve()));
    }
    const kube = await started(startKubeStandIn(release), (exporter) => exporter.close());
    const targets = gateways.map(({ adminUrl }, replica) => ({
      job: 'model-gateway',
      url: adminUrl,
      labels: { ...release, pod: `model-gateway-${replica}` },
    }));
    const prometheus = await started(
      startPrometheus({
        program,
        targets: [...targets, { job: 'kube-state-metrics', url: kube.url, labels: {} }],
        rules: ruleFiles(),
        scrapeSeconds: SCRAPE_SECONDS,
      }),
      (server) => server.stop(),
    );
    for (const { adminUrl } of gateways) await httpClient(adminUrl, adminToken).get('/admin/users');
    return {
      ...{ prometheus, vendors, collector, postgres, redis, gateways, close },
      users: await registerUsers(gateways[0]?.url ?? '', vendors),
      writeTables: async (document) => {
        current = document;
        for (const gateway of gateways) await gateway.writeTables(document);
      },
      restart: async (replica) => {
        await gateways[replica]?.stop();
        const start = restarts[replica];
        if (start !== undefined) gateways[replica] = await start();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}
