import type { GatewayUnderTest } from '../../harness/gateway/start-gateway.ts';
import type { AttackCase } from '../attack-case.ts';
import { plainSending } from '../attack-case.ts';
import { attackOnce } from '../wire/client.ts';
import { requestBytes } from '../wire/request-bytes.ts';
import type { World } from '../world.ts';

/** One request at a time, again after this pause. */
const pauseMs = 100;
/**
 * In time: within a second, on a machine where the same request to a gateway that nobody attacks takes some 5 ms. Where
 * that one has to wait, for the machine, Postgres or this process, so much more is granted, for an answer under attack
 * takes as many turns on the same busy machine, each behind the work of others.
 */
const inTimeMs = 1_000;
const controlShare = 3;

const patienceMs = 30_000;

/** The vendor is this process, which may be busy with the attack: that is not the gateway's time. */
const patience = { 'x-gateway-timeout': '30' };

const healthyCase = (target: string): AttackCase => ({
  sending: { ...plainSending, headers: { ...patience, 'x-gateway-override-model': target } },
  reading: { kind: 'all' },
  vendor: null,
  statuses: [200],
});
/** A vendor's model and one of the user's own server, in turn. */
const healthyCases = [healthyCase('openai:gpt-test'), healthyCase('self_hosted:m')];

export interface BystanderFacts {
  readonly asked: number;
  /** Answered 503 for want of time or room. */
  readonly shed: number;
  /** Less what was the machine's fault, or this process's. */
  readonly slowestMs: number;
  /** The same of a gateway beside it that nobody attacks. */
  readonly controlMs: number;
  /** What went wrong, in words. */
  readonly problems: readonly string[];
}

export interface Bystander {
  stop(): Promise<BystanderFacts>;
}

/** Sends healthy requests of another user beside a batch. */
export function startBystander(world: World, name: string): Bystander {
  const problems: string[] = [];
  let [asked, shed, slowestMs, controlMs, running] = [0, 0, 0, 0, true];
  const ask = async (): Promise<void> => {
    const healthy = healthyCases[asked % healthyCases.length] as AttackCase;
    const to = (gateway: GatewayUnderTest, id: string) => {
      const { hostname: host, port } = new URL(gateway.url);
      const request = requestBytes(healthy, id, world.bystander.key);
      return attackOnce({ host, port: Number(port) }, request, healthy, patienceMs);
    };
    const machine = excuses(world);
    const [seen, beside] = await Promise.all([
      to(world.gateway(), `bystander-${name}-${asked}`).then((one) => ({ ...one, ms: one.ms - machine() })),
      to(world.control, `control-${name}-${asked}`),
    ]);
    asked += 1;
    slowestMs = Math.max(slowestMs, seen.ms);
    controlMs = Math.max(controlMs, beside.ms);
    const [answer] = seen.answers;
    if (answer?.status === 503 && isShortage(answer.body)) shed += 1;
    else if (answer?.status !== 200)
      problems.push(`a bystander got ${answer?.status ?? seen.ending} ${answer?.body ?? ''}`);
  };
  const going = (async () => {
    while (running) {
      await ask();
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  })();
  return {
    stop: async () => {
      running = false;
      await going;
      return { asked, shed, slowestMs, controlMs, problems };
    },
  };
}

/** Answers that say that the machine is too slow at the moment. */
export function isShortage(body: string): boolean {
  return body.includes('"overloaded"') || body.includes('"database_unavailable"');
}

/** Starts a watch: the time since then in which this process was busy, or the gateway ready and not run. */
function excuses(world: World): () => number {
  const waitedMs = world.witness().waitedMs();
  const before = performance.eventLoopUtilization();
  return () => performance.eventLoopUtilization(before).active + world.witness().waitedMs() - waitedMs;
}

/** How long a bystander may wait where the same request beside it took `controlMs`. */
export function bystanderLimitMs(controlMs: number): number {
  return inTimeMs + controlShare * controlMs;
}
