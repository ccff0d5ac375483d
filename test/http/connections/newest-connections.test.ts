/** A listener that nobody can fill: the admin port's, which has probes to answer whoever floods it. */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { keepNewest } from '../../../src/http/connections/newest-connections.ts';

test('the oldest connection makes room for the newest, and one that has ended counts no more', async () => {
  const server = createServer((socket) => socket.on('error', () => undefined).write('hello'));
  keepNewest(server, 2);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const clients: Socket[] = [];
  onTestFinished(() => {
    for (const client of clients) client.destroy();
    server.close();
  });
  const enter = async (): Promise<Socket> => {
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    clients.push(client);
    await once(client, 'data');
    return client;
  };
  const first = await enter();
  const second = await enter();
  const firstIsClosed = once(first, 'close');
  const third = await enter();
  await firstIsClosed;
  expect([second.closed, third.closed]).toEqual([false, false]);
  second.destroy();
  await expect
    .poll(() => new Promise((resolve) => server.getConnections((_error, count) => resolve(count))))
    .toBe(1);
  await enter();
  expect(third.closed).toBe(false);
});
