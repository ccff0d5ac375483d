import { setTimeout as delay } from 'node:timers/promises';
import type { GatewayUnderTest } from '../gateway/start-gateway.ts';
import { eventually } from '../measure/eventually.ts';
import { metric, untilRowsStored } from '../measure/fault-metrics.ts';
import type { Seen } from './traffic.ts';
import { startTraffic } from './traffic.ts';
import type { World } from './world.ts';

/** Demo load on a world in which things go wrong. */

/** Longer than clients of the stores wait, so that it shows. */
const OUTAGE_MS = 4_000;
/** The longest stories, whose clients are slow, end well before, on a busy machine too. */
const REST_LIMIT_MS = 90_000;

export interface RunOptions {
  /** Roughly: outages and a restart come on top. */
  readonly seconds: number;
  readonly requestsPerSecond: number;
  /** Good tables other than the first. */
  readonly newTables: string;
  /** OpenAI fails for a while. */
  readonly outage: boolean;
}

export interface Run {
  /** What clients saw. */
  readonly seen: readonly Seen[];
  /** Seconds since 1970 at which all that the second replica had counted before its restart was scraped. */
  readonly restartedAt: number;
  /** The same for both replicas, at the end. */
  readonly endedAt: number;
}

/** Load for a while: tables change, vendors and stores go away, a replica restarts. At the end everything is at rest. */
export async function runFaults(world: World, options: RunOptions): Promise<Run> {
  const part = (share: number) => delay(options.seconds * share * 1_000);
  const seen: Seen[] = [];
  const [first, second] = world.gateways.map(({ url }) => url);
  let urls = [first ?? '', second ?? ''];
  const traffic = startTraffic({
    urls: () => urls,
    users: world.users,
    requestsPerSecond: options.requestsPerSecond,
    onEnd: (one) => seen.push(one),
  });
  await part(0.2);
  await world.writeTables('tiers: {}');
  await part(0.1);
  await world.writeTables(options.newTables);
  if (options.outage) world.vendors.setDown('openai', true);
  await part(0.15);
  world.vendors.setDown('openai', false);
  await part(0.1);
  world.redis.stopSignal();
  await delay(OUTAGE_MS);
  world.redis.continueSignal();
  await part(0.1);
  world.postgres.stopSignal();
  await delay(OUTAGE_MS);
  world.postgres.continueSignal();
  await part(0.15);
  urls = [first ?? ''];
  const restartedAt = await scrapedAtRest(world, world.gateways.slice(1));
  await world.restart(1);
  urls = [first ?? '', second ?? ''];
  await part(0.2);
  await traffic.stop();
  return { seen, restartedAt, endedAt: await scrapedAtRest(world, world.gateways) };
}

/** Resolves with a moment after the last settlement and the scrape that followed it. */
async function scrapedAtRest(world: World, gateways: readonly GatewayUnderTest[]): Promise<number> {
  for (const gateway of gateways) {
    const isIdle = async () => (await metric(gateway, 'gw_inflight_requests')) === 0 || undefined;
    await eventually(isIdle, REST_LIMIT_MS);
    await untilRowsStored(gateway);
  }
  const restSeconds = Date.now() / 1_000;
  return eventually(async () => {
    const scrapes = await world.prometheus.query('timestamp(gw_build_info)');
    const isFresh = scrapes.length > 0 && scrapes.every(({ value }) => value > restSeconds);
    return isFresh ? Date.now() / 1_000 : undefined;
  });
}
