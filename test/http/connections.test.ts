/** More connections than the process may hold: those that are there are served. */
import { afterEach, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import type { Edge } from './edge.ts';
import { head, startEdge } from './edge.ts';

let edge: Edge;

afterEach(async () => {
  edge.app.server.closeAllConnections();
  await edge.app.close();
});

const ping = head({}, 'GET /ping');

test('connections beyond the limit are closed and counted; those within it, and later ones, are served', async () => {
  edge = await startEdge((scope) => scope.get('/ping', async () => ({})), { maxConnections: 20 });
  const idle = Array.from({ length: 19 }, () => edge.connect('GET /slow HTTP/1.1\r\nx-head'));
  const kept = edge.connect(ping).read();
  await eventually(async () => kept.text.includes('200 OK') || undefined);
  const flood = Array.from({ length: 100 }, () => edge.connect(ping).read());
  await Promise.all(flood.map(({ closed }) => closed));
  expect(flood.map(({ text }) => text).join('')).toBe('');
  expect(edge.shed).toEqual(Array.from({ length: 100 }, () => 'connections'));
  kept.text = '';
  kept.socket.write(ping);
  await eventually(async () => kept.text.includes('200 OK') || undefined);
  for (const { socket } of idle) socket.destroy();
  await eventually(async () => {
    const later = edge.connect(head({ connection: 'close' }, 'GET /ping')).read();
    await later.closed;
    return later.text.includes('200 OK') || undefined;
  });
});
