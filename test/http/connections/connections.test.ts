/** More connections than the process may hold: those that are there are served. */
import { readFileSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { eventually } from '../../harness/measure/eventually.ts';
import type { Client, Edge } from '../edge.ts';
import { head, startEdge } from '../edge.ts';

let edge: Edge;

afterEach(() => edge.close());

const ping = head({}, 'GET /ping');
const stream = head({}, 'GET /held');

/** Twenty connections at most; `/held` is answered without an end. */
async function startWithStreams(): Promise<void> {
  edge = await startEdge(
    (scope) => {
      scope.get('/ping', async () => ({}));
      scope.get('/held', (_request, reply) => void reply.hijack().raw.writeHead(200).write('begun'));
    },
    { maxConnections: 20 },
  );
}

const until = (client: Client, text: string): Promise<true> =>
  eventually(async () => client.text.includes(text) || undefined);

test('connections beyond the limit are closed and counted; those within it, and later ones, are served', async () => {
  await startWithStreams();
  const held = Array.from({ length: 19 }, () => edge.connect(stream).read());
  await Promise.all(held.map((one) => until(one, 'begun')));
  const kept = edge.connect(ping).read();
  await eventually(async () => kept.text.includes('200 OK') || undefined);
  const flood = Array.from({ length: 100 }, () => edge.connect(ping).read());
  await Promise.all(flood.map(({ closed }) => closed));
  expect(flood.map(({ text }) => text).join('')).toBe('');
  expect(edge.shed).toEqual(Array.from({ length: 100 }, () => 'connections'));
  kept.text = '';
  kept.socket.write(ping);
  await eventually(async () => kept.text.includes('200 OK') || undefined);
  for (const { socket } of held) socket.destroy();
  await eventually(async () => {
    const later = edge.connect(head({ connection: 'close' }, 'GET /ping')).read();
    await later.closed;
    return later.text.includes('200 OK') || undefined;
  });
});

const { drain } = parse(readFileSync('charts/model-gateway/values.yaml', 'utf8')) as {
  drain: { delaySeconds: number };
};

/** What an answer says of how long its connection is kept. */
const toldSeconds = ({ text }: Client): number => Number(/keep-alive: timeout=(\d+)/i.exec(text)?.[1]);

test("idle connections outlive those of every proxy; where connections become scarce they outlive nginx's", async () => {
  edge = await startEdge((scope) => scope.get('/ping', async () => ({})), { maxConnections: 20 });
  const { server } = edge.app;
  const seconds: number[] = [];
  for (let open = 0; open < 20; open += 1) {
    const client = edge.connect(ping).read();
    await eventually(async () => client.text.includes('200 OK') || undefined);
    seconds.push((server.keepAliveTimeout + server.keepAliveTimeoutBuffer) / 1000);
    expect(toldSeconds(client)).toBeLessThan(drain.delaySeconds);
  }
  const envoySeconds = 3_600;
  expect(seconds.slice(0, 15).filter((kept) => kept > envoySeconds)).toHaveLength(15);
  const nginxSeconds = 60;
  expect(seconds.slice(15).filter((kept) => kept > nginxSeconds && kept < envoySeconds)).toHaveLength(5);
});

test('unused connections give way where all are taken, and those with an answer under way do not', async () => {
  await startWithStreams();
  // Else silent ones would be closed for being late.
  edge.app.server.headersTimeout = 0;
  edge.app.server.requestTimeout = 0;
  const held = edge.connect(stream).read();
  const used = edge.connect(ping).read();
  await Promise.all([until(held, 'begun'), until(used, '200 OK')]);
  const silent = Array.from({ length: 18 }, () => edge.connect());
  await eventually(async () => edge.life.connections.count === 20 || undefined);
  const late = await eventually(async () => {
    const one = edge.connect(ping).read();
    await eventually(async () => one.socket.closed || one.text.includes('200 OK') || undefined);
    return one.text === '' ? undefined : one;
  });
  expect(silent.some(({ socket }) => socket.closed)).toBe(true);
  expect([held, used, late].map(({ socket }) => socket.closed)).toEqual([false, false, false]);
});

test('the limits on the arrival of a request do not count while a connection is idle', async () => {
  edge = await startEdge((scope) => scope.get('/ping', async () => ({})));
  const { server } = edge.app;
  server.timeout = 100;
  server.headersTimeout = 100;
  server.requestTimeout = 100;
  const kept = edge.connect(ping).read();
  await eventually(async () => kept.text.includes('200 OK') || undefined);
  // Younger, and cut by each of these limits: it has sent nothing, or half a head.
  const others = ['', 'GET /ping HTTP/1.1\r\nhost'].map((part) => edge.connect(part).read());
  await Promise.all(others.map(({ closed }) => closed));
  kept.text = '';
  kept.socket.write(ping);
  await eventually(async () => kept.text.includes('200 OK') || undefined);
});
