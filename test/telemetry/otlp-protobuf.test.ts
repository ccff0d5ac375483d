/** The default protocol, OTLP in protobuf over HTTP: what its variables do, and what a sick collector costs. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, RequestListener } from 'node:http';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { chatOk } from '../harness/gateway/chat.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { expectInTime } from '../harness/measure/fault-bounds.ts';
import { certificateAuthority } from '../harness/servers/certificates.ts';
import { closeAfterTest } from '../harness/servers/use-started.ts';

/** The last flush may take a second, the rest of the stop another. */
const stopLimitMs = 1_500;

interface Received {
  readonly request: IncomingMessage;
  readonly body: Buffer;
}

/** A collector that keeps what it is sent and answers with this status; null: never. */
async function startCollector(status: number | null = 200, tls?: Readonly<Record<string, unknown>>) {
  const received: Received[] = [];
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received.push({ request, body: Buffer.concat(chunks) });
      if (status !== null) response.writeHead(status).end();
    });
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return closeAfterTest({
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    first: () => eventually(() => Promise.resolve(received[0])),
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  });
}

/** One chat in a trace of its own, through a gateway with these variables. */
async function traced(env: Readonly<Record<string, string>>) {
  const gateway = await startForTest({ env: { OTEL_BSP_SCHEDULE_DELAY: '20', ...env } });
  const user = await registerWithKeys(gateway.url);
  const traceId = randomBytes(16);
  const traceparent = `00-${traceId.toString('hex')}-${randomBytes(8).toString('hex')}-01`;
  await chatOk(user.client, {}, { traceparent });
  return { gateway, user, traceId };
}

test('goes to the endpoint below v1/traces, with the resource of the environment', async () => {
  const collector = await startCollector();
  const { traceId } = await traced({
    OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/base/`,
    OTEL_SERVICE_NAME: 'gateway-of-the-test',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=pr%C3%BCfung',
  });
  const found = await eventually(() =>
    Promise.resolve(collector.received.find(({ body }) => body.includes(traceId))),
  );
  expect(found.request).toMatchObject({ method: 'POST', url: '/base/v1/traces' });
  expect(found.request.headers).toMatchObject({ 'content-type': 'application/x-protobuf' });
  for (const text of [
    'gateway-of-the-test',
    'prüfung',
    'process.pid',
    'model-gateway',
    'opentelemetry.io/schemas',
  ]) {
    expect(found.body.includes(text), text).toBe(true);
  }
});

test('heeds the variables of traces before the general ones: endpoint, headers, compression', async () => {
  const [general, own] = [await startCollector(), await startCollector()];
  const { traceId, gateway } = await traced({
    OTEL_EXPORTER_OTLP_ENDPOINT: general.url,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${own.url}/as/it/stands`,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-general=1,x-both=general',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-both=traces%20alone',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'none',
    OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'gzip',
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_TRACES_EXPORTER: 'otlp',
  });
  await gateway.stop();
  const { request } = await own.first();
  expect(request.url).toBe('/as/it/stands');
  expect(request.headers).toMatchObject({
    'x-general': '1',
    'x-both': 'traces alone',
    'content-encoding': 'gzip',
    'content-type': 'application/x-protobuf',
  });
  expect(Buffer.concat(own.received.map(({ body }) => gunzipSync(body))).includes(traceId)).toBe(true);
  expect(general.received).toEqual([]);
});

test('knows itself to the collector, and the collector to itself, by certificates', async () => {
  const [servers, clients] = [certificateAuthority(), certificateAuthority()];
  const collector = await startCollector(200, {
    ...servers.issue(['127.0.0.1']),
    ca: clients.root,
    requestCert: true,
    rejectUnauthorized: true,
  });
  const client = clients.issue(['gateway']);
  const folder = mkdtempSync(join(tmpdir(), 'otlp-'));
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  await traced({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_CERTIFICATE: file('root.pem', servers.root),
    OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: file('client.pem', client.cert),
    OTEL_EXPORTER_OTLP_CLIENT_KEY: file('client.key', client.key),
  });
  const { request } = await collector.first();
  expect((request.socket as TLSSocket).authorized).toBe(true);
});

test('goes in batches of the size that is asked for', async () => {
  const collector = await startCollector();
  const { gateway } = await traced({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: '60000',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1',
  });
  await gateway.stop();
  expect(collector.received.length).toBeGreaterThanOrEqual(2);
});

test.each([
  ['hangs', null],
  ['is overloaded', 503],
  ['refuses', 401],
])('a collector that %s delays the end by no more than a second', async (_what, status) => {
  const collector = await startCollector(status);
  const { gateway, user } = await traced({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '2',
    OTEL_BSP_MAX_QUEUE_SIZE: '4',
  });
  await Promise.all(Array.from({ length: 20 }, () => chatOk(user.client)));
  await collector.first();
  const stoppingAtMs = performance.now();
  expect(await gateway.stop()).toBe(0);
  expectInTime(performance.now() - stoppingAtMs, stopLimitMs);
});

test('is left alone where somebody else has registered a provider before: the gateway serves', async () => {
  const collector = await startCollector();
  const { gateway, user } = await traced({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    NODE_OPTIONS: `--import=${new URL('foreign-provider.ts', import.meta.url)}`,
  });
  for (let round = 0; round < 20; round += 1) await chatOk(user.client);
  expect(await gateway.stop()).toBe(0);
  expect(collector.received).toEqual([]);
});
