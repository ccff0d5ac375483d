/** What the kernel takes of vendors' bytes is bounded where clients do not read: it is memory of the container too. */
import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createUpstreamClient } from '../../../src/adapters/upstream/upstream-client.ts';
import type { UpstreamHttp } from '../../../src/adapters/upstream/upstream-http-port.ts';
import type { OpenStream, StreamConsumer } from '../../../src/chat/open-stream.ts';
import type { UpstreamControl } from '../../../src/chat/ports.ts';
import { relay } from '../../../src/chat/relay.ts';
import { outboundPolicy } from '../../../src/core/net/outbound-policy.ts';
import { ReplyClient } from '../../../src/http/answers/reply-client.ts';
import { callTo, ofUser } from '../../adapters/upstream/local-server.ts';
import { manySockets } from '../../harness/gateway/upstream-client.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { sentBytes, unreadBytes } from '../../harness/measure/sent-bytes.ts';
import type { Client, Edge } from '../edge.ts';
import { head, startEdge } from '../edge.ts';

const mebibyte = 1024 * 1024;
/** What the edge gives the kernel. */
const roomBytes = 48 * mebibyte;
/** The kernel lets so much wait only where much was read before. */
const readBytes = 8 * mebibyte;
/** Together they hold more than that, on the vendor's side alone. */
const readers = 24;

/** A server that streams without end. */
async function startFlood(): Promise<Server> {
  const block = Buffer.alloc(64 * 1024, 'z');
  const server = createServer((_request, response) => {
    const flow = (): void => {
      while (!response.destroyed && response.write(block));
    };
    response.on('drain', flow);
    flow();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** An answer of that server, as the story sees it. */
function openCall(upstream: UpstreamHttp, origin: string, userId: string): [OpenStream, UpstreamControl] {
  let consumer: StreamConsumer | null = null;
  const gone = { kind: 'cancelled', reason: 'client-gone' } as const;
  const control = upstream.send(callTo(origin, ofUser(userId)), {
    onHead: () => undefined,
    onData: (chunk) => consumer?.onBytes(chunk),
    onEnd: () => consumer?.onEnd(gone),
    onFailure: () => consumer?.onEnd(gone),
  });
  const stream = {
    attach: (attached: StreamConsumer) => {
      consumer = attached;
    },
    pause: () => control.pause(),
    resume: () => control.resume(),
    get connectionName() {
      return control.connectionName;
    },
  } as OpenStream;
  return [stream, control];
}

let vendor: Server;
let upstream: UpstreamHttp;
let edge: Edge;

beforeEach(async () => {
  vendor = await startFlood();
  const { port } = vendor.address() as AddressInfo;
  upstream = createUpstreamClient(outboundPolicy('allow-private', [], []), manySockets);
  edge = await startEdge((scope) => {
    scope.get('/stream', async (request, reply) => {
      const { userId } = request.account;
      const client = new ReplyClient(reply, edge.life, userId);
      const [stream, control] = openCall(upstream, `http://127.0.0.1:${port}`, userId);
      client.signal.addEventListener('abort', () => control.abort());
      await relay(stream, client, null);
      client.destroy();
    });
  });
});

afterEach(async () => {
  await edge.close();
  await upstream.close();
  vendor.closeAllConnections();
  vendor.close();
});

/** Reads much of a stream, and then nothing. */
async function readAndStop(userId: string): Promise<Client> {
  const client = edge.connect(head({ 'x-user': userId }, 'GET /stream'));
  const { socket } = client;
  socket.on('data', () => void (socket.bytesRead > readBytes && socket.pause()));
  await eventually(async () => socket.isPaused() || socket.destroyed || undefined);
  return client;
}

test('vendors that stream without end to clients that stopped reading', async () => {
  const { port } = edge.app.server.address() as AddressInfo;
  const { port: vendorPort } = vendor.address() as AddressInfo;
  const other = await readAndStop('other');
  for (let index = 0; index < readers; index += 1) await readAndStop('hoarder');
  await eventually(async () => {
    const { active = 0 } = upstream.connections().get('self_hosted') ?? {};
    return sentBytes(port) + unreadBytes(vendorPort) < roomBytes && active < readers ? true : undefined;
  });
  expect(edge.stalled.length).toBeGreaterThan(0);
  expect(other.socket.destroyed).toBe(false);
});
