import type { LoadOrder } from './load.ts';
import type { Addressee, Round, Stage, Suite, Target } from './measure.ts';
import { measureHeld, measureRounds, warmUp } from './measure.ts';
import type { GatewayOptions, Running } from './processes.ts';
import { gatewayEnvironment, registerUser, startFloor, startGateway, startWorker } from './processes.ts';
import { BARE_HTTP, CACHED, DIRECT, FLOOR, GATEWAY, telemetryGateways } from './targets.ts';

const json = { 'content-type': 'application/json' };
const everySuite: readonly Suite[] = ['json', 'burst', 'paced', 'latency'];
const streamSuites: readonly Suite[] = ['json', 'burst', 'paced'];

export interface Found {
  readonly rounds: readonly Round[];
  /** MiB that open streams take, by target. */
  readonly held: Readonly<Record<string, number>>;
}

/** Starts everything but Postgres, measures, and stops it, whatever happens. Throws StageError. */
export async function benchmark(folder: string, databaseUrl: string, quick: boolean): Promise<Found> {
  const running: Running[] = [];
  const started = async <T extends Running>(starting: Promise<T>): Promise<T> => {
    const one = await starting;
    running.push(one);
    return one;
  };
  try {
    const vendor = await started(startWorker<number>('vendor'));
    const load = await started(startWorker<LoadOrder>('load'));
    const shared = gatewayEnvironment(databaseUrl, vendor.url);
    return await measureAll(
      { vendor, load, quick },
      {
        gateway: (options) => started(startGateway(folder, shared, options)),
        floor: (kind) => started(startFloor(kind, vendor.url)),
      },
    );
  } finally {
    await Promise.all(running.map((one) => one.stop()));
  }
}

interface Starters {
  gateway(options?: GatewayOptions): Promise<Running>;
  floor(kind: 'http' | 'fastify'): Promise<Running>;
}

async function measureAll(stage: Stage, { gateway, floor }: Starters): Promise<Found> {
  const { vendor } = stage;
  /** Whose latency and memory are looked at too. */
  const closely: Record<string, () => Promise<Running>> = {
    [FLOOR]: () => floor('fastify'),
    [BARE_HTTP]: () => floor('http'),
    [GATEWAY]: () => gateway(),
  };

  const first = await gateway();
  const headers = { ...json, ...(await registerUser(first.url)) };
  const targets: Target[] = [];
  const add = (name: string, one: Running, suites: readonly Suite[], more: Addressee['headers'] = {}) =>
    targets.push({ ...one, name, suites, headers: { ...headers, ...more } });
  for (const [name, start] of Object.entries(closely)) {
    add(name, name === GATEWAY ? first : await start(), everySuite);
  }
  add(CACHED, await gateway(), ['json'], { 'x-gateway-cache': 'true' });
  for (const [name, options] of Object.entries(telemetryGateways(vendor.url))) {
    add(name, await gateway(options), streamSuites);
  }

  console.log('Warming up ...');
  await warmUp(stage, targets);
  const direct: Target = { ...vendor, headers: json, name: DIRECT, suites: ['latency'] };
  const rounds = await measureRounds(stage, [...targets, direct]);
  for (const target of targets) await target.stop();

  const held: Record<string, number> = {};
  for (const [name, start] of Object.entries(closely)) {
    const target = { ...(await start()), headers };
    held[name] = await measureHeld(stage, target);
    await target.stop();
  }
  return { rounds, held };
}
