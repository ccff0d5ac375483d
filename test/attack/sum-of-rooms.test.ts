/** Every room for memory has its bound; all of them full at once, and one body more, are bounded as well. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../adapters/upstream/local-server.ts';
import type { User } from '../harness/gateway/register.ts';
import { addKey, registerUser } from '../harness/gateway/register.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { metric } from '../harness/measure/fault-metrics.ts';
import { recordFault } from '../harness/scorecard/scorecard.ts';
import { certificateAuthority } from '../harness/servers/certificates.ts';
import { chunkEvent } from './cases/wire-form.ts';
import { chartProcess, peakBytes } from './chart-process.ts';
import { bareSockets } from './wire/sockets.ts';

const mebibyte = 1024 * 1024;
const users = 12;
const streamsOfEach = 60;
const bodiesOfEach = 4;

/** Answers over TLS: a stream that falls silent within an event, or a body that nobody reads on. */
async function startHoarder(ca: ReturnType<typeof certificateAuthority>): Promise<string> {
  const server = createServer(ca.issue(['127.0.0.1']), (request, response) => {
    request.once('data', (bytes: Buffer) => {
      if (!bytes.includes('@stream')) return request.pause();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(chunkEvent({ role: 'assistant', content: 'y'.repeat(10_000) }));
      response.write(chunkEvent({ content: 'x'.repeat(24_000) }).slice(0, -2));
      return undefined;
    });
  });
  server.requestTimeout = 0;
  const { port } = await listen(server);
  return `https://127.0.0.1:${port}`;
}

/** A CA file that the gateway trusts from its start. */
function trusted(root: string): Record<string, string> {
  const folder = mkdtempSync(join(tmpdir(), 'model-gateway-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'ca.pem'), root);
  return { NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') };
}

test('streams over TLS, bodies that no server takes and a body of wide text together stay within the container', {
  timeout: 240_000,
}, async () => {
  const { env, limitBytes } = chartProcess();
  const ca = certificateAuthority();
  const base_url = await startHoarder(ca);
  const gateway = await startForTest({ env: { ...env, ...trusted(ca.root), GW_DRAIN_SECONDS: '1' } });
  const tenants: User[] = [];
  for (let index = 0; index < users; index += 1) {
    const user = await registerUser(gateway.url);
    await addKey(user, { provider: 'self_hosted', api_key: 'none', declared_region: 'x', base_url });
    tenants.push(user);
  }
  const open = bareSockets(gateway.url);
  const sockets: Socket[] = [];
  const statuses = new Map<string, number>();
  let answered = 0;
  const send = ({ key }: User, content: string, stream: boolean): void => {
    const body = JSON.stringify({ model: 'gw/cheap', stream, messages: [{ role: 'user', content }] });
    const socket = open();
    sockets.push(socket);
    socket.once('data', (bytes: Buffer) => {
      answered += 1;
      const status = bytes.toString('latin1', 9, 12);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    });
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n` +
        'X-Gateway-Override-Model: self_hosted:m\r\nX-Gateway-Timeout: 300\r\nX-Gateway-Cache: true\r\n' +
        `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  };
  let sent = 0;
  for (let round = 0; round < streamsOfEach; round += 1) {
    for (const [at, user] of tenants.entries())
      send(user, `@stream ${round} ${at} ${'a'.repeat(6_000)}`, true);
    sent += users;
    await eventually(async () => answered === sent || undefined, 30_000);
  }
  expect(statuses).toEqual(new Map([['200', sent]]));
  for (let round = 0; round < bodiesOfEach; round += 1)
    for (const user of tenants) send(user, `@body ${'b'.repeat(1_000_000)}`, false);
  const waiting = () => metric(gateway, 'gw_inflight_requests');
  await eventually(
    async () => (await waiting()) + answered - sent >= sent + users * bodiesOfEach || undefined,
    30_000,
  );
  send(tenants[0] as User, `@body ${'\u0100'.repeat(9_900_000)}`, false);
  await eventually(async () => (statuses.get('503') ?? 0) > 0 || undefined, 60_000);
  const figure = `peak ${(peakBytes(gateway.pid) / mebibyte).toFixed(0)} MiB`;
  process.stdout.write(`${figure}, ${JSON.stringify([...statuses])}\n`);
  expect(peakBytes(gateway.pid)).toBeLessThan(limitBytes);
  expect((await tenants[1]?.client.get('/v1/models'))?.status).toBe(200);
  for (const socket of sockets) socket.destroy();
  // More at once than are served whatever is short.
  const crowd = () => Promise.all(Array.from({ length: 40 }, () => tenants[1]?.client.get('/v1/models')));
  await eventually(
    async () => (await crowd()).every((answer) => answer?.status === 200) || undefined,
    30_000,
  );
  recordFault({
    fault: `${users * streamsOfEach} TLS streams, ${users * bodiesOfEach} bodies of 1 MB that are not taken, and one of 20 MB`,
    required: 'the process lives within its memory, and refuses what it has no room for',
    figure,
    passed: true,
  });
});
