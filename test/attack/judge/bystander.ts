import type { AttackCase } from '../attack-case.ts';
import { plainSending } from '../attack-case.ts';
import { attackOnce } from '../wire/client.ts';
import { requestBytes } from '../wire/request-bytes.ts';
import type { World } from '../world.ts';

/** One request at a time, again after this pause. */
const pauseMs = 100;
/** In time: a request that takes some 5 ms alone, on a machine that does other work besides. */
const inTimeMs = 1_000;

const patienceMs = 30_000;

/** The vendor is this process, which may be busy with the attack: that is not the gateway's time. */
const headers = { 'x-gateway-override-model': 'openai:gpt-test', 'x-gateway-timeout': '30' };

const healthyCase: AttackCase = {
  sending: { ...plainSending, headers },
  reading: { kind: 'all' },
  vendor: null,
  statuses: [200],
};

export interface BystanderFacts {
  readonly asked: number;
  /** Answered 503 for want of time or room. */
  readonly shed: number;
  /** Less what was the machine's fault, or this process's. */
  readonly slowestMs: number;
  /** What went wrong, in words. */
  readonly problems: readonly string[];
}

export interface Bystander {
  stop(): Promise<BystanderFacts>;
}

/** Sends healthy requests of another user beside a batch. */
export function startBystander(world: World, name: string): Bystander {
  const problems: string[] = [];
  let [asked, shed, slowestMs, running] = [0, 0, 0, true];
  const ask = async (): Promise<void> => {
    const { hostname: host, port } = new URL(world.gateway().url);
    const request = requestBytes(healthyCase, `bystander-${name}-${asked}`, world.bystander.key);
    const machine = excuses(world);
    const seen = await attackOnce({ host, port: Number(port) }, request, healthyCase, patienceMs);
    asked += 1;
    slowestMs = Math.max(slowestMs, seen.ms - machine());
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
      return { asked, shed, slowestMs, problems };
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

/** The time limit where each way to Postgres takes `delayMs`. */
export function bystanderLimitMs(delayMs: number): number {
  // A commit is five messages at most: BEGIN, rows, sums, COMMIT, and the answer.
  return inTimeMs + 10 * delayMs;
}
