/** Bodies of many values, and long ones, which take long to read, check and pass on, share the turns of the event loop. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../../harness/measure/eventually.ts';
import type { Edge } from '../edge.ts';
import { head, startEdge } from '../edge.ts';

const crowd = 24;
/** What stands for checking a body and writing it for its vendor. */
const workMs = 20;

let edge: Edge;
let turn = 0;
/** The turn in which each was worked on. */
let turns: number[] = [];
let ticking: NodeJS.Immediate;

beforeEach(async () => {
  turns = [];
  const tick = (): void => {
    turn += 1;
    ticking = setImmediate(tick);
  };
  tick();
  edge = await startEdge((scope) => {
    scope.post('/echo', { bodyLimit: 1024 * 1024 }, async () => {
      turns.push(turn);
      const endMs = performance.now() + workMs;
      while (performance.now() < endMs);
      return {};
    });
  });
});

afterEach(async () => {
  clearImmediate(ticking);
  await edge.close();
});

test.each([
  ['many values', Array(3_000).fill(0)],
  ['long text', ['x'.repeat(70_000)]],
  ['text of escapes', ['\n'.repeat(50_000)]],
])('a crowd of bodies of %s that ends in one turn has fifty milliseconds of it', async (_what, value) => {
  const body = Buffer.from(JSON.stringify(value));
  let begun = 0;
  edge.app.server.on('request', () => (begun += 1));
  const clients = Array.from({ length: crowd }, (_, index) =>
    edge.connect(head({ 'content-length': body.length, 'x-user': `u${index}` }), body.subarray(0, -1)),
  );
  await eventually(async () => begun === crowd || undefined);
  for (const { socket } of clients) socket.write(body.subarray(-1));
  await eventually(async () => turns.length === crowd || undefined);
  const perTurn = [...Map.groupBy(turns, (one) => one).values()].map(({ length }) => length);
  expect(Math.max(...perTurn)).toBeLessThanOrEqual(50 / workMs + 1);
});
