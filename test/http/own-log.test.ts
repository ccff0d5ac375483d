/** Fastify has no logger of its own; what it says of a request in trouble is in ours. */
import { afterEach, expect, test } from 'vitest';
import { eventually } from '../harness/measure/eventually.ts';
import type { Edge } from './edge.ts';
import { head, startEdge } from './edge.ts';

let edge: Edge;

afterEach(() => edge.close());

test('a handler that fails behind its answer is in the log, and its answer as it was', async () => {
  edge = await startEdge((scope) =>
    scope.get('/late', async (_request, reply) => {
      reply.hijack();
      reply.raw.end('as it was');
      throw new Error('too late');
    }),
  );
  const client = edge.connect(head({ connection: 'close' }, 'GET /late')).read();
  await client.closed;
  expect(client.text).toContain('as it was');
  const line = await eventually(async () => edge.logged.find((one) => one.includes('too late')));
  expect(JSON.parse(line)).toMatchObject({ level: 50, err: { message: 'too late' } });
});

test('an error of ours is in the log, and a refusal is not', async () => {
  edge = await startEdge((scope) => {
    scope.get('/bug', () => Promise.reject(new Error('a bug')));
  });
  for (const path of ['/bug', '/nowhere'])
    await edge.connect(head({ connection: 'close' }, `GET ${path}`)).read().closed;
  expect(edge.logged.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(['unhandled error']);
});
