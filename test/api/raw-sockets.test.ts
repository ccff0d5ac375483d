/**
 * Bytes that no proper client writes, by the hundred: framing that two readers could read differently, broken lines and
 * chunks, floods, and clients that go away at every place. After each case the process lives, nothing that was
 * smuggled has run, every answer is in our envelope or is none, and a bystander on a connection of its own is served.
 */

import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { afterAll, expect, test } from 'vitest';
import { httpClient, sendRaw } from '../harness/gateway/http-client.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { expectInTime } from '../harness/measure/fault-bounds.ts';
import data from './raw-sockets.json' with { type: 'json' };
import known from './smuggling.json' with { type: 'json' };

const limitMs = 10_000;
/** A bystander's own request beside all this, on two busy cores. */
const bystanderLimitMs = 1_500;
const leastCases = 300;

const gateway = useGateway();
const user = useUser(gateway);
let cases = 0;

afterAll(async () => {
  expect(cases, 'cases').toBeGreaterThanOrEqual(leastCases);
});

const bytes = (text: string) => Buffer.from(text, 'latin1');

function registration(email: string): string {
  const body = JSON.stringify({ email });
  return `POST /v1/users HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

const headOf = (line: string) =>
  `${line} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\ncontent-type: application/json\r\n`;

/** Each answer is an error in the envelope; `most` of them at most. */
function expectRefusals(text: string, most: number): void {
  const answers = text.split(/(?=HTTP\/1\.1 \d{3} )/).filter((answer) => answer !== '');
  expect(answers.length, text).toBeLessThanOrEqual(most);
  for (const answer of answers) {
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]);
    expect(status, answer).toBeGreaterThanOrEqual(400);
    expect([500, 502], answer).not.toContain(status);
    expect(JSON.parse(body), answer).toMatchObject({ error: { request_id: expect.any(String) } });
  }
}

/** What must hold after every case. */
async function expectUnharmed(): Promise<void> {
  cases += 1;
  expect(gateway.process.exitCode).toBeNull();
  const startedAtMs = performance.now();
  expect((await user.client.get('/v1/models')).status).toBe(200);
  expectInTime(performance.now() - startedAtMs, bystanderLimitMs);
}

/** All take a body: a GET is rightly answered before the rest of it is looked at. */
const starts = ['POST /v1/users', 'POST /v1/chat/completions', 'POST /v1/keys'];
const framings = [
  ...data.framings.map(([name = '', headers = '']) => ({ name, headers, body: '' })),
  ...known.map(({ name, headers, body = '' }) => ({ name, headers, body })),
  ...data.chunked.map(([name = '', body = '']) => ({ name, headers: 'Transfer-Encoding: chunked', body })),
];

test.each(starts.flatMap((start) => framings.map((framing) => ({ start, ...framing }))))(
  '$start: $name',
  async ({ start, headers, body }) => {
    const email = `${randomUUID()}@example.com`;
    const sent = bytes(`${headOf(start)}${headers}\r\n\r\n${body}${registration(email)}`);
    const { text, closed } = await sendRaw(gateway.url, { parts: [sent], limitMs });
    expectRefusals(text, 1);
    expect(closed, text).toBe(true);
    const later = await httpClient(gateway.url).post('/v1/users', { email });
    expect(later.status, 'the smuggled registration must not have run').toBe(201);
    await expectUnharmed();
  },
);

test.each(data.lines)('a request line with %s', async (_name, line = '') => {
  const email = `${randomUUID()}@example.com`;
  const sent = bytes(`${line}\r\nhost: x\r\n\r\n${registration(email)}`);
  const { text, closed } = await sendRaw(gateway.url, { parts: [sent], limitMs });
  expectRefusals(text, 1);
  expect(closed, text).toBe(true);
  expect((await httpClient(gateway.url).post('/v1/users', { email })).status).toBe(201);
  await expectUnharmed();
});

const many = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, i) => line(i)).join('');

test.each([
  ['2,500 headers', () => many(2500, (i) => `x-${i}: y\r\n`)],
  ['a header of 100 KB', () => `x: ${'y'.repeat(100_000)}\r\n`],
  ['a header name of 100 KB', () => `${'x'.repeat(100_000)}: y\r\n`],
  ['a thousand equal headers', () => many(1000, () => 'x-gateway-residency: india\r\n')],
  ['100 KB of cookies', () => many(100, () => `cookie: ${'a=b; '.repeat(200)}\r\n`)],
  ['100 KB of empty headers', () => many(25_000, () => 'a:\r\n')],
  ['a header that never ends', () => `x: ${'y'.repeat(1_000_000)}`],
])('a flood: %s', async (_name, headers) => {
  const parts = [bytes(`${headOf('GET /v1/models')}${headers()}\r\n`)];
  const { text, closed } = await sendRaw(gateway.url, { parts, limitMs });
  expectRefusals(text, 1);
  expect(closed, text).toBe(true);
  await expectUnharmed();
});

test.each([
  ['a path of 100 KB', () => `GET /v1/${'x'.repeat(100_000)} HTTP/1.1\r\nhost: x\r\n\r\n`],
  ['a query of 100 KB', () => `GET /v1/models?${'x'.repeat(100_000)} HTTP/1.1\r\nhost: x\r\n\r\n`],
  [
    'an extension of 1 MB',
    () => `${headOf('POST /v1/users')}transfer-encoding: chunked\r\n\r\n3;${'x'.repeat(1_000_000)}`,
  ],
  [
    'a thousand extensions',
    () => `${headOf('POST /v1/users')}transfer-encoding: chunked\r\n\r\n3${';a=b'.repeat(20_000)}`,
  ],
  [
    'trailers of 1 MB',
    () =>
      `${headOf('POST /v1/users')}transfer-encoding: chunked\r\n\r\n0\r\n${many(50_000, (i) => `x-${i}: yyyyyy\r\n`)}`,
  ],
])('a flood: %s', async (_name, text) => {
  const answer = await sendRaw(gateway.url, { parts: [bytes(text())], limitMs });
  expectRefusals(answer.text, 1);
  expect(answer.closed, answer.text).toBe(true);
  await expectUnharmed();
});

const whole = () =>
  `${headOf('POST /v1/chat/completions')}transfer-encoding: chunked\r\n\r\n5\r\n{"mod\r\n12\r\nel":"gw/balanced"}\r\n`;

/** Ends the connection after `length` bytes of a request: with a reset, or in order. */
async function leaveAfter(length: number, how: 'reset' | 'end'): Promise<void> {
  const { hostname, port } = new URL(gateway.url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  const gone = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await new Promise<void>((resolve) => socket.write(bytes(whole().slice(0, length)), () => resolve()));
  if (how === 'reset') socket.resetAndDestroy();
  else socket.end();
  socket.resume();
  await gone;
}

const places = Array.from({ length: 25 }, (_, index) => Math.floor((index * 260) / 25));

test.each(places.flatMap((place) => [['reset', place] as const, ['end', place] as const]))(
  'a client that leaves by %s after %i bytes',
  async (how, place) => {
    await leaveAfter(place, how);
    await expectUnharmed();
  },
);

test.each([2, 10, 100])('%i requests in one write get as many answers, in order', async (count) => {
  const one = `GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\nx-request-id: `;
  const last = `${one}last\r\nconnection: close\r\n\r\n`;
  const parts = [bytes(many(count - 1, (i) => `${one}r-${i}\r\n\r\n`) + last)];
  const { text, statuses } = await sendRaw(gateway.url, { parts, limitMs });
  expect(statuses).toEqual(Array.from({ length: count }, () => 200));
  const ids = [...text.matchAll(/x-request-id: (\S+)/gi)].map(([, id]) => id);
  expect(ids).toEqual([...Array.from({ length: count - 1 }, (_, i) => `r-${i}`), 'last']);
  await expectUnharmed();
});
