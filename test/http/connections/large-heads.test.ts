/** What strangers make this process keep with heads of requests: many small fields, and requests that do not end. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { maxHeaderFields } from '../../../src/http/connections/odd-requests.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import type { Edge } from '../edge.ts';
import { head, startEdge } from '../edge.ts';

let edge: Edge;

beforeEach(async () => {
  edge = await startEdge((scope) => {
    scope.get('/ping', async () => ({}));
    scope.post('/echo', async ({ body }) => body);
  });
});

afterEach(() => edge.close());

/** As many fields in all: `head` gives two of its own. */
const fieldsOf = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count - 2 }, (_, index) => [`a${index}`, '']));

test('a head may have as many fields as proxies let through', async () => {
  const client = edge.connect(head(fieldsOf(maxHeaderFields), 'GET /ping')).read();
  await eventually(async () => client.text.includes('200 OK') || undefined);
});

test.each([
  ['a body to come', { 'content-length': 1_000_000 }],
  ['none', {}],
])('a head of more is refused and kept by nobody, with %s', async (_body, fields) => {
  const client = edge.connect(head({ ...fieldsOf(maxHeaderFields), ...fields, one: 'more' })).read();
  await client.closed;
  expect(client.text).toContain('431 Request Header Fields Too Large');
  expect(client.text).toContain('"code":"headers_too_large"');
});

test('a refused request is not kept for a body that drips', { timeout: 15_000 }, async () => {
  const client = edge.connect(head({ 'content-length': 1_000_000 }, 'POST /nowhere')).read();
  const drip = setInterval(() => client.socket.write('x'), 200);
  await client.closed;
  clearInterval(drip);
  expect(client.text).toContain('404 Not Found');
  // It was given two seconds, and not the twenty that a hundred drips take.
  expect(client.socket.bytesWritten).toBeLessThan(
    head({ 'content-length': 1_000_000 }, 'POST /nowhere').length + 50,
  );
});

test.each([
  ['GET /ping', '', '{}'],
  ['POST /echo', '{"a":1}', '{"a":1}'],
])('behind the answer to an upgrade nothing is read: %s', async (target, body, answer) => {
  const fields = { connection: 'upgrade', upgrade: 'h2c', 'content-length': body.length };
  const client = edge.connect(head(fields, target), body, 'x'.repeat(100_000)).read();
  await client.closed;
  expect(client.text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(client.text.endsWith(`\r\n\r\n${answer}`)).toBe(true);
  expect(client.text.toLowerCase()).toContain('connection: close');
});
