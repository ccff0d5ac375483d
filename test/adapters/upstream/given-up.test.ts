import { createServer as createHttpServer } from 'node:http';
import type { Server } from 'node:net';
import { createServer } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createUpstreamClient } from '../../../src/adapters/upstream/upstream-client.ts';
import type { UpstreamHttp } from '../../../src/adapters/upstream/upstream-http-port.ts';
import type { UpstreamControl, UpstreamListener } from '../../../src/chat/ports.ts';
import { outboundPolicy } from '../../../src/core/net/outbound-policy.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { callTo, listen, ofUser } from './local-server.ts';

/** What a call leaves behind that its caller gives up: nothing, from that moment on. */

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** It takes connections, reads, and says no word of TLS. */
const silentServer = (): Server => createServer((socket) => socket.resume());

function open(): UpstreamHttp {
  const upstream = createUpstreamClient(outboundPolicy('allow-private', [], []), { sockets: 4, perUser: 4 });
  onTestFinished(() => upstream.close());
  return upstream;
}

interface Sent {
  readonly control: UpstreamControl;
  readonly over: Promise<string>;
  /** Whoever is told, and all that hangs on it: in the gateway that is the whole request. */
  readonly listener: WeakRef<UpstreamListener>;
}

function send(upstream: UpstreamHttp, origin: string, userAddress: boolean): Sent {
  let settle = (_how: string): void => undefined;
  const over = new Promise<string>((resolve) => {
    settle = resolve;
  });
  const listener: UpstreamListener = {
    onHead: () => undefined,
    onData: () => undefined,
    onEnd: () => settle('end'),
    onFailure: ({ kind }) => settle(kind),
  };
  const control = upstream.send(callTo(origin, userAddress ? ofUser('u') : {}), listener);
  return { control, over, listener: new WeakRef(listener) };
}

/** Gives a call up once `ready`, and keeps nothing of it here. */
async function giveUp(sent: Sent, ready: () => Promise<unknown>): Promise<WeakRef<UpstreamListener>> {
  await ready();
  sent.control.abort();
  expect(await sent.over).toBe('aborted');
  return sent.listener;
}

const isGone = (reference: WeakRef<object>): Promise<true> =>
  eventually(async () => {
    collectGarbage();
    return reference.deref() === undefined || undefined;
  });

const until = (holds: () => boolean): Promise<true> => eventually(async () => holds() || undefined);

describe.each([
  ['a vendor', false],
  ['a user’s server', true],
])('a call to %s that is given up is kept by nobody', (_name, userAddress) => {
  test('while its connection is being made', async () => {
    const silent = await listen(silentServer());
    const upstream = open();
    const origin = `https://127.0.0.1:${silent.port}`;
    const reference = await giveUp(send(upstream, origin, userAddress), () =>
      until(() => silent.open.size === 1),
    );
    await isGone(reference);
  });

  test('while it waits for the next look at the sockets', async () => {
    const server = await listen(createHttpServer((_request, response) => response.end('{}')));
    const upstream = open();
    const origin = `http://127.0.0.1:${server.port}`;
    expect(await send(upstream, origin, userAddress).over).toBe('end');
    const reference = await giveUp(send(upstream, origin, userAddress), async () => undefined);
    await isGone(reference);
    expect(server.open.size).toBe(1);
  });

  test('while its answer is awaited', async () => {
    let requests = 0;
    const server = await listen(
      createHttpServer(() => {
        requests += 1;
      }),
    );
    const upstream = open();
    const origin = `http://127.0.0.1:${server.port}`;
    const reference = await giveUp(send(upstream, origin, userAddress), () => until(() => requests === 1));
    await isGone(reference);
    await until(() => server.open.size === 0);
  });
});

describe('a connection whose call is given up while it is made', () => {
  test('to a user’s server is not made: a black hole would hold a socket for each such call', async () => {
    const silent = await listen(silentServer());
    const upstream = open();
    for (let round = 0; round < 3; round += 1) {
      const calls = [1, 2].map(() => send(upstream, `https://127.0.0.1:${silent.port}`, true));
      await until(() => silent.open.size === 2);
      for (const { control } of calls) control.abort();
      expect(upstream.connections().get('self_hosted')).toEqual({ active: 0, idle: 0, waiting: 0 });
      await until(() => silent.open.size === 0);
    }
  });

  test('to a vendor is made all the same, and serves the next call', async () => {
    let served = 0;
    const server = await listen(
      createHttpServer((_request, response) => {
        served += 1;
        response.end('{}');
      }),
    );
    const upstream = open();
    const origin = `http://127.0.0.1:${server.port}`;
    const first = send(upstream, origin, false);
    first.control.abort();
    expect(await first.over).toBe('aborted');
    await until(() => upstream.connections().get('openai')?.idle === 1);
    expect(await send(upstream, origin, false).over).toBe('end');
    expect([served, server.open.size]).toEqual([1, 1]);
  });
});

test('a client that is closed before a kept connection was looked at tells the call so, and opens no other', async () => {
  let connections = 0;
  const server = await listen(
    createHttpServer((_request, response) => response.end()).on('connection', () => {
      connections += 1;
    }),
  );
  const upstream = open();
  const origin = `http://127.0.0.1:${server.port}`;
  expect(await send(upstream, origin, false).over).toBe('end');
  const waiting = send(upstream, origin, false);
  await upstream.close();
  expect(await waiting.over).toBe('reset');
  await until(() => server.open.size === 0);
  expect(connections).toBe(1);
});

test('a client that is closed while a connection is made tells the call so', async () => {
  const silent = await listen(silentServer());
  const upstream = open();
  const calls = [true, false].map((mine) => send(upstream, `https://127.0.0.1:${silent.port}`, mine));
  await until(() => silent.open.size === 2);
  await upstream.close();
  expect(await Promise.all(calls.map(({ over }) => over))).toEqual(['reset', 'reset']);
  await until(() => silent.open.size === 0);
});
