/** Long pages of logs, of several users and many at once, each read as fast as it comes. */
import { expect, test } from 'vitest';
import type { User } from '../harness/gateway/register.ts';
import { registerUser } from '../harness/gateway/register.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';
import { recordFault } from '../harness/scorecard/scorecard.ts';
import { chartProcess, peakBytes } from './chart-process.ts';

const mebibyte = 1024 * 1024;
const users = 4;
const pagesAtOnce = 96;
const bursts = 3;
const rows = 1_000;
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

test('a crowd that reads pages of a thousand rows is served in turns, and the process lives within its memory', {
  timeout: 240_000,
}, async () => {
  const { env, limitBytes } = chartProcess();
  const gateway = await startForTest({ env });
  const tenants = await Promise.all(Array.from({ length: users }, () => registerUser(gateway.url)));
  await Promise.all(tenants.map(fillLog));
  const statuses = new Map<number, number>();
  const read = async ({ client }: User): Promise<void> => {
    const { status } = await client.get(`/v1/logs?limit=${rows}`);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  };
  for (let burst = 0; burst < bursts; burst += 1)
    await Promise.all(tenants.flatMap((user) => Array.from({ length: pagesAtOnce }, () => read(user))));

  const figure = `peak ${(peakBytes(gateway.pid) / mebibyte).toFixed(0)} MiB, ${JSON.stringify([...statuses])}`;
  process.stdout.write(`${figure}\n`);
  expect([...statuses.keys()].filter((status) => ![200, 429, 503].includes(status))).toEqual([]);
  expect(statuses.get(200)).toBeGreaterThan(users);
  expect(peakBytes(gateway.pid)).toBeLessThan(mostShare * limitBytes);
  recordFault({
    fault: `${users} users read ${pagesAtOnce} pages of ${rows} log rows each at once`,
    required: 'the process lives within its memory, and serves them in turns',
    figure,
    passed: true,
  });
});
