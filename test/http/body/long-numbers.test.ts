/** Bodies full of long numbers: each is read again and again before it is known whether it can be kept. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mostLongDigits } from '../../../src/core/json/long-numbers.ts';
import { cpuMsOf } from '../../harness/measure/cpu-time.ts';
import type { Edge } from '../edge.ts';
import { head, startEdge } from '../edge.ts';

let edge: Edge;

beforeEach(async () => {
  edge = await startEdge((scope) => {
    scope.post('/echo', { bodyLimit: 20 * 1024 * 1024 }, async ({ body }) => ({
      count: (body as readonly unknown[]).length,
    }));
  });
});

afterEach(() => edge.close());

async function post(body: string): Promise<string> {
  const bytes = Buffer.from(body);
  const client = edge.connect(head({ 'content-length': bytes.length, connection: 'close' }), bytes).read();
  await client.closed;
  return client.text;
}

const filled = (bytes: number, item: string): string =>
  `[${Array(Math.floor(bytes / (item.length + 1)))
    .fill(item)
    .join(',')}]`;

const betweenDoubles = `${(2n ** 53n + 1n) * 5n ** 400n}e-400`;

test.each<[what: string, number: string]>([
  ['exact ones', `0.5${'0'.repeat(900)}`],
  ['some between two doubles', betweenDoubles],
  ['long exponents', `1e${'0'.repeat(900)}1`],
  ['one', '1'.repeat(1_100_000)],
])('more than may be are refused before they are parsed: %s', async (_what, number) => {
  const refused = await post(filled(Math.max(1_050_000, number.length + 1), number));
  expect(refused).toContain('HTTP/1.1 422');
  expect(refused).toContain('"code":"inexact_number"');
  expect(refused).toContain(String(mostLongDigits));
  expect(edge.life.bodies.heldBytes).toBe(0);
});

test('the largest body of them takes less time to refuse than to parse', async () => {
  const exact = filled(9_950_000, `0.5${'0'.repeat(997)}`).slice(0, -1);
  const body = `${exact},${filled(9_000_000, betweenDoubles).slice(1)}`;
  const parsedMs = cpuMsOf(() => JSON.parse(body));
  const before = process.cpuUsage();
  expect(await post(body)).toContain('HTTP/1.1 422');
  const { user, system } = process.cpuUsage(before);
  // What it takes to send and receive them counts too; so it does for the same bytes in a string.
  const refusedMs = (user + system) / 1000;
  const plain = process.cpuUsage();
  expect(await post(JSON.stringify(['x'.repeat(body.length - 4)]))).toContain('{"count":1}');
  const spent = process.cpuUsage(plain);
  expect(refusedMs - (spent.user + spent.system) / 1000).toBeLessThan(parsedMs);
});

test('as many as anybody sends, and digits in strings, are taken', async () => {
  expect(await post(filled(950_000, `0.5${'0'.repeat(200)}`))).toContain('{"count":');
  expect(await post(filled(5_000_000, `"${'1'.repeat(1_000)}"`))).toContain('{"count":');
  expect(await post(filled(500_000, '1.5'))).toContain('HTTP/1.1 422');
  expect(await post(filled(400_000, '1.5'))).toContain('{"count":100000}');
});
