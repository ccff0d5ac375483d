import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { certificateAuthority } from '../servers/certificates.ts';
import { onLastCore } from './cores.ts';
import type { LoadOrder } from './load.ts';
import type { Addressee, Stage, Target, Turns } from './measure.ts';
import { inARow, measure, measureHeld, together, warmUp } from './measure.ts';
import type { Running } from './processes.ts';
import { gatewayEnvironment, registerUser, startFloor, startGateway, startWorker } from './processes.ts';
import type { Suite } from './suites.ts';
import type { TargetPlan } from './targets.ts';
import { BARE_HTTP, DIRECT, FLOOR, GATEWAY, targetPlans } from './targets.ts';
import type { Pace } from './vendor.ts';

const json = { 'content-type': 'application/json' };

export interface Found {
  readonly turns: Turns;
  /** MiB that open streams take, by target. */
  readonly held: Readonly<Record<string, number>>;
}

export interface BenchmarkOptions {
  /** For files of this run. */
  readonly folder: string;
  readonly databaseUrl: string;
  readonly postgresPid: number;
  /** A tenth of it all: that it runs. */
  readonly quick: boolean;
  /** Only these targets and suites, and no memory; all without it. */
  readonly only?: { readonly targets: readonly string[]; readonly suites: readonly Suite[] };
}

/** Starts everything but Postgres, measures, and stops it, whatever happens. Throws StageError. */
export async function benchmark(options: BenchmarkOptions): Promise<Found> {
  const running: Running[] = [];
  const started = async <T extends Running>(starting: Promise<T>): Promise<T> => {
    const one = await starting;
    running.push(one);
    return one;
  };
  try {
    const secure = secureFiles(options.folder);
    const plain = await started(startWorker<Pace>('vendor'));
    const overTls = await started(startWorker<Pace>('vendor', [secure.cert, secure.key]));
    const load = await started(startWorker<LoadOrder>('load'));
    const collector = await started(startWorker<never>('collector'));
    const shared = gatewayEnvironment(options.databaseUrl, plain.url);
    const startOne: Start = ({ kind, env, preload = [], overTls: isSecure }) => {
      const trust = { NODE_EXTRA_CA_CERTS: secure.root };
      if (kind !== 'gateway') return started(startFloor(kind, (isSecure ? overTls : plain).url, trust));
      const vendor = isSecure ? { ...trust, GW_OPENAI_BASE_URL: overTls.url } : {};
      return started(startGateway(options.folder, shared, { env: { ...vendor, ...env }, preload }));
    };
    const start: Start = async (plan) => {
      const one = await startOne(plan);
      onLastCore(one.pid);
      return one;
    };
    const { postgresPid, quick, only } = options;
    const stage = { vendors: [plain, overTls], load, postgresPid, quick };
    return await measureAll(stage, start, targetPlans(collector.url), only);
  } finally {
    await Promise.all(running.map((one) => one.stop()));
  }
}

type Start = (plan: TargetPlan) => Promise<Running>;

/** A certificate for the vendor that speaks TLS, and the root to be trusted. */
function secureFiles(folder: string): { readonly root: string; readonly cert: string; readonly key: string } {
  const authority = certificateAuthority();
  const write = (name: string, text: string): string => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return file;
  };
  const { cert, key } = authority.issue(['127.0.0.1']);
  return {
    root: write('root.pem', authority.root),
    cert: write('cert.pem', cert),
    key: write('key.pem', key),
  };
}

async function stop({ processes }: Addressee): Promise<void> {
  await Promise.all(processes.map((one) => one.stop()));
}

async function measureAll(
  stage: Stage,
  start: Start,
  plans: ReturnType<typeof targetPlans>,
  only: BenchmarkOptions['only'],
): Promise<Found> {
  const vendor = stage.vendors[0] as Running;
  const registrar = await start(plans[GATEWAY] as TargetPlan);
  // Users are in the database, which all gateways share.
  const users = {
    openai: await registerUser(registrar.url, 'openai'),
    anthropic: await registerUser(registrar.url, 'anthropic'),
  };
  await registrar.stop();
  const begin = async (name: string): Promise<Target> => {
    const plan = plans[name] as TargetPlan;
    const headers = { ...json, ...users[plan.provider ?? 'openai'], ...plan.headers };
    const processes: Running[] = [];
    while (processes.length < (plan.processes ?? 1)) processes.push(await start(plan));
    const suites = plan.suites.filter((suite) => only?.suites.includes(suite) ?? true);
    const floor = plan.kind === 'fastify' ? { isFloor: true as const } : {};
    return { processes, name, suites, headers, ...floor };
  };

  const floor = await begin(FLOOR);
  const found: Turns[] = [];
  for (const [name, { kind, against = FLOOR, starts = 1 }] of Object.entries(plans)) {
    if (kind === 'fastify' || only?.targets.includes(name) === false) continue;
    const ofStarts: Turns[] = [];
    while (ofStarts.length < starts) {
      // Alone with its base: a dozen others that idle wake up a thousand times a second, and empty each other's caches.
      const base = against === FLOOR ? floor : await begin(against);
      const target = await begin(name);
      await warmUp(stage, base, target);
      ofStarts.push(await measure(stage, base, target, starts));
      await stop(target);
      if (base !== floor) await stop(base);
    }
    found.push(inARow(ofStarts));
    console.log(`Measured: ${name}.`);
  }
  if (only !== undefined) return { turns: together(found), held: {} };
  const direct: Target = { processes: [vendor], headers: json, name: DIRECT, suites: ['latency', 'first'] };
  found.push(await measure(stage, floor, direct));
  const turns = together(found);
  await stop(floor);

  const held: Record<string, number> = {};
  for (const name of [FLOOR, BARE_HTTP, GATEWAY]) {
    const target = { processes: [await start(plans[name] as TargetPlan)], headers: floor.headers };
    held[name] = await measureHeld(stage, target);
    await stop(target);
  }
  return { turns, held };
}
