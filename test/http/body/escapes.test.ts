/** Bodies whose strings are full of escapes: each costs as much as twenty plain bytes. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mostEscapes } from '../../../src/http/body/costly-json.ts';
import type { Edge } from '../edge.ts';
import { head, startEdge } from '../edge.ts';

const mebibyte = 1024 * 1024;
let edge: Edge;

beforeEach(async () => {
  edge = await startEdge((scope) => {
    scope.post('/echo', { bodyLimit: 20 * mebibyte }, async ({ body }) => ({
      length: String(body).length,
    }));
  });
});

afterEach(() => edge.close());

async function post(body: Buffer): Promise<string> {
  const client = edge.connect(head({ 'content-length': body.length, connection: 'close' }), body).read();
  await client.closed;
  return client.text;
}

test.each<[name: string, escape: string, weight: number]>([
  ['line ends', '\\n', 1],
  ['quotes', '\\"', 1],
  ['backslashes', '\\\\', 1],
  ['characters spelled by number', '\\u4e2d', 1],
  ['control characters', '\\u0001', 1],
  ['pairs of halves', '\\ud83d\\ude00', 1],
  ['halves of characters', '\\udc00', 10],
])(
  'as many %s as may be are taken, one more is refused by name',
  async (_name, one, weight) => {
    const most = mostEscapes / weight;
    // The largest text of some kinds is longer than a body may be.
    const count = Math.min(most, Math.floor((20 * mebibyte - 2) / one.length));
    expect(await post(Buffer.from(`"${one.repeat(count)}"`))).toContain('HTTP/1.1 200');
    if (count < most) return;
    const refused = await post(Buffer.from(`"${one.repeat(count)}${one}"`));
    expect(refused).toContain('HTTP/1.1 422');
    expect(refused).toContain('"code":"too_many_escapes"');
    expect(refused).toContain(String(mostEscapes));
    expect(edge.life.bodies.heldBytes).toBe(0);
  },
  60_000,
);

test('a large body without any is taken up to its limit', async () => {
  expect(await post(Buffer.from(`"${'x'.repeat(20 * mebibyte - 2)}"`))).toContain(
    `{"length":${20 * mebibyte - 2}}`,
  );
}, 60_000);
