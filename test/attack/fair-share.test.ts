/** One user sends all it can over two replicas that share Redis: another one, within its limits, does not feel it. */
import { expect, test } from 'vitest';
import { chat } from '../harness/gateway/chat.ts';
import type { HttpClient } from '../harness/gateway/http-client.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { setLimits } from '../harness/gateway/set-limits.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { useReplica } from '../harness/gateway/use-replica.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { recordFault } from '../harness/scorecard/scorecard.ts';
import { startRedis } from '../harness/servers/redis.ts';
import { useServer } from '../harness/servers/use-started.ts';
import { openAiAnswer } from '../harness/vendors/openai-wire.ts';
import { respond } from '../harness/vendors/vendor-plans.ts';

const redis = useServer(startRedis);
const gateway = useGateway(() => ({ redisUrl: redis.url }));
const other = useReplica(gateway);

/** Of the noisy user, who asks some tens of times as often. */
const perMinute = 600;
const noisyClients = 8;
const vendorMs = 100;
/** Of the quiet user, alone and beside the other, in rounds that take turns: what else the machine does is in both. */
const rounds = 4;
const perRound = 60;
const mostSlowdown = 1.5;

/** One user's clients, one for each replica. */
async function userWith(limits: Parameters<typeof setLimits>[2]): Promise<HttpClient[]> {
  const user = await registerWithKeys(gateway.url, ['openai']);
  await setLimits(gateway, user, limits);
  const clients = [gateway, other].map(({ url }) => httpClient(url, user.key));
  for (const client of clients) {
    await eventually(
      async () => (await chat(client)).headers['x-ratelimit-limit-requests'] !== undefined || undefined,
    );
  }
  return clients;
}

/** Milliseconds of each answer, one after the other on each replica. */
async function timesOf(clients: readonly HttpClient[]): Promise<number[]> {
  const lanes = clients.map(async (client) => {
    const times: number[] = [];
    for (let count = 0; count < perRound / clients.length; count += 1) {
      const beganAtMs = performance.now();
      expect((await chat(client)).status).toBe(200);
      times.push(performance.now() - beganAtMs);
    }
    return times;
  });
  return (await Promise.all(lanes)).flat();
}

const p99 = (times: readonly number[]): number =>
  times.toSorted((one, two) => one - two)[Math.floor(times.length * 0.99)] as number;

test(`${noisyClients} clients of one user that never pause leave another one's p99 within ${mostSlowdown} times of alone`, async () => {
  const body = JSON.stringify(openAiAnswer('m'));
  gateway.vendors.openai.always(respond(200, [{ waitMs: vendorMs }, body]));
  const quiet = await userWith({ requests_per_minute: 100_000 });
  const noisy = await userWith({ requests_per_minute: perMinute });
  const [alone, beside]: [number[], number[]] = [[], []];
  const statuses = { 200: 0, 429: 0, other: 0 };
  for (let round = 0; round < rounds; round += 1) {
    alone.push(...(await timesOf(quiet)));
    let isOver = false;
    const lanes = Array.from({ length: noisyClients }, async (_, lane) => {
      while (!isOver) {
        const { status } = await chat(noisy[lane % noisy.length] as HttpClient);
        statuses[status === 200 || status === 429 ? status : 'other'] += 1;
      }
    });
    beside.push(...(await timesOf(quiet)));
    isOver = true;
    await Promise.all(lanes);
  }
  expect(statuses.other).toBe(0);
  expect(statuses[429]).toBeGreaterThan(perMinute);
  const slowdown = p99(beside) / p99(alone);
  expect(slowdown).toBeLessThan(mostSlowdown);
  recordFault({
    fault: `${noisyClients} clients of one user that never pause, over two replicas with Redis`,
    required: `another user's p99 stays within ${mostSlowdown} times of alone`,
    figure: `${slowdown.toFixed(2)} times (${statuses[429]} refused beside)`,
    passed: true,
  });
}, 300_000);
