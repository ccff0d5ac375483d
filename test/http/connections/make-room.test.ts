/** Whose connections are closed where there would be too many. */
import { EventEmitter } from 'node:events';
import type { Server } from 'node:http';
import { expect, test } from 'vitest';
import { KeptConnections } from '../../../src/http/connections/kept-connections.ts';

interface Place {
  readonly from: string;
  readonly bytesWritten?: number;
  readonly isAnswering?: true;
}

class Peer extends EventEmitter {
  readonly remoteAddress: string;
  readonly bytesWritten: number;
  readonly _httpMessage: object | null;
  destroyed = false;

  constructor({ from, bytesWritten = 0, isAnswering }: Place) {
    super();
    this.remoteAddress = from;
    this.bytesWritten = bytesWritten;
    this._httpMessage = isAnswering === true ? {} : null;
  }

  destroy(): void {
    this.destroyed = true;
  }
}

const [many, few] = ['203.0.113.1', '198.51.100.1'];

function closedOf(places: readonly Place[], most: number, laterMs = 10_000): readonly number[] {
  const server = new EventEmitter() as Server;
  const connections = new KeptConnections();
  connections.watch(server);
  const peers = places.map((place) => new Peer(place));
  for (const peer of peers) server.emit('connection', peer);
  connections.makeRoom(most, performance.now() + laterMs);
  return peers.flatMap(({ destroyed }, index) => (destroyed ? [index] : []));
}

test.each<[what: string, places: readonly Place[], most: number, closed: readonly number[]]>([
  ['the oldest of the network that has the most', [{ from: few }, { from: many }, { from: many }], 1, [1]],
  [
    'first those that were never answered',
    [{ from: many, bytesWritten: 9 }, { from: many }, { from: many, bytesWritten: 9 }],
    2,
    [0, 1],
  ],
  ['none with an answer under way', [{ from: many, isAnswering: true }, { from: many }], 2, [1]],
  [
    'all addresses of one site as one',
    [{ from: few }, { from: few }, ...['1', '2', '3'].map((at) => ({ from: `2001:db8:1:${at}::1` }))],
    9,
    [2, 3, 4],
  ],
  ['none where there is none', [], 1, []],
])('%s', (_what, places, most, closed) => {
  expect(closedOf(places, most)).toEqual(closed);
});

test('none whose first request may be on its way', () => {
  expect(closedOf([{ from: many }, { from: many }], 2, 500)).toEqual([]);
});
