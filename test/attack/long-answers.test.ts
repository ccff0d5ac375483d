/** The longest answers there are, of several users and many at once, each read as fast as it comes. */
import pg from 'pg';
import { expect, test } from 'vitest';
import { latencyBucketCount } from '../../src/adapters/postgres/latency-buckets.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerUser } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';
import { recordFault } from '../harness/scorecard/scorecard.ts';
import { chartProcess, peakBytes } from './chart-process.ts';

const mebibyte = 1024 * 1024;
const users = 4;
const answersAtOnce = 96;
const bursts = 3;
const rows = 1_000;
const groups = 9_900;
const lanes = 4;
/** Of the container's memory: the rest is for all else that goes on. */
const mostShare = 3 / 4;

/** Refused requests have their rows too; JSON writes each quote of the model's name as two characters. */
async function fillLog({ client }: User): Promise<void> {
  const body = { model: 'gw/cheap', messages: [{ role: 'user', content: 'x' }] };
  const headers = { 'x-gateway-override-model': `openai:${'"'.repeat(240)}` };
  const lane = async () => {
    for (let row = 0; row < rows / lanes; row += 1) await client.post('/v1/chat/completions', body, headers);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** Sums of all users, as years of requests leave them. */
async function fillSums({ database }: GatewayUnderTest): Promise<void> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query(
    `INSERT INTO request_rollups (user_id, hour, provider, model, mode, lane, requests, successes, cache_hits,
       input_tokens, output_tokens, cost_micro_usd, saved_micro_usd, latency_buckets)
     SELECT id, date_trunc('hour', now()) - g / 10 * interval '24 hours', 'self_hosted', rpad(g % 10 || '"', 200, '"'),
       'override', 0, g, g, g, g, g, g, g, array_fill(g, ARRAY[${latencyBucketCount}])
     FROM users, generate_series(1, ${groups}) AS g`,
  );
  await client.end();
}

const crowds: readonly {
  readonly what: string;
  readonly path: string;
  readonly fill: (gateway: GatewayUnderTest, tenants: readonly User[]) => Promise<unknown>;
}[] = [
  {
    what: `pages of ${rows} log rows`,
    path: `/v1/logs?limit=${rows}`,
    fill: (_gateway, tenants) => Promise.all(tenants.map(fillLog)),
  },
  {
    what: `statistics of ${groups} groups`,
    path: '/v1/stats?group_by=provider,model,mode,day',
    fill: fillSums,
  },
];

test.each(crowds)(
  'a crowd that reads $what is served in turns, and the process lives within its memory',
  {
    timeout: 240_000,
  },
  async ({ what, path, fill }) => {
    const { env, limitBytes } = chartProcess();
    const gateway = await startForTest({ env });
    const tenants = await Promise.all(Array.from({ length: users }, () => registerUser(gateway.url)));
    await fill(gateway, tenants);
    const statuses = new Map<number, number>();
    const read = async ({ client }: User): Promise<void> => {
      const { status } = await client.get(path);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    };
    for (let burst = 0; burst < bursts; burst += 1)
      await Promise.all(tenants.flatMap((user) => Array.from({ length: answersAtOnce }, () => read(user))));

    const figure = `peak ${(peakBytes(gateway.pid) / mebibyte).toFixed(0)} MiB, ${JSON.stringify([...statuses])}`;
    process.stdout.write(`${figure}\n`);
    expect([...statuses.keys()].filter((status) => ![200, 429, 503].includes(status))).toEqual([]);
    expect(statuses.get(200)).toBeGreaterThan(users);
    expect(peakBytes(gateway.pid)).toBeLessThan(mostShare * limitBytes);
    recordFault({
      fault: `${users} users read ${answersAtOnce} ${what} each at once`,
      required: 'the process lives within its memory, and serves them in turns',
      figure,
      passed: true,
    });
  },
);
