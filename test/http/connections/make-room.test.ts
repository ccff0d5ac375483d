/** Whose connections are closed where there would be too many. */
import { EventEmitter } from 'node:events';
import type { Server } from 'node:http';
import { expect, test } from 'vitest';
import { KeptConnections } from '../../../src/http/connections/kept-connections.ts';

interface Place {
  readonly from: string;
  /** Bytes, between the two looks. */
  readonly sends?: number;
  readonly bytesWritten?: number;
  readonly isAnswering?: true;
}

class Peer extends EventEmitter {
  readonly remoteAddress: string;
  readonly bytesWritten: number;
  readonly sends: number;
  bytesRead = 0;
  readonly _httpMessage: object | null;
  destroyed = false;

  constructor({ from, bytesWritten = 0, isAnswering, sends = 0 }: Place) {
    super();
    this.sends = sends;
    this.remoteAddress = from;
    this.bytesWritten = bytesWritten;
    this._httpMessage = isAnswering === true ? {} : null;
  }

  destroy(): void {
    this.destroyed = true;
  }
}

const [many, few] = ['203.0.113.1', '198.51.100.1'];

/** Which of them are closed so long after a first look, where `kept` may stay. */
function closedOf(places: readonly Place[], kept: number, laterMs = 10_000): readonly number[] {
  const server = new EventEmitter() as Server;
  const connections = new KeptConnections();
  connections.watch(server);
  const peers = places.map((place) => new Peer(place));
  for (const peer of peers) server.emit('connection', peer);
  connections.makeRoom(kept, 0);
  expect(peers.filter(({ destroyed }) => destroyed)).toEqual([]);
  for (const peer of peers) peer.bytesRead += peer.sends;
  connections.makeRoom(kept, laterMs);
  return peers.flatMap(({ destroyed }, index) => (destroyed ? [index] : []));
}

test.each<[what: string, places: readonly Place[], kept: number, closed: readonly number[]]>([
  ['of whoever has the most', [{ from: few }, { from: many }, { from: many }], 2, [1]],
  [
    'of the next one too, where that is not enough',
    [{ from: few }, { from: many }, { from: many }],
    0,
    [0, 1, 2],
  ],
  [
    'first those that were never answered',
    [{ from: many, bytesWritten: 9 }, { from: many }, { from: many, bytesWritten: 9 }],
    1,
    [0, 1],
  ],
  ['none with an answer under way', [{ from: many, isAnswering: true }, { from: many }], 0, [1]],
  ['none on which something comes', [{ from: many, sends: 1 }, { from: many }], 0, [1]],
  [
    'all addresses of one site as one',
    [{ from: few }, { from: few }, ...['1', '2', '3'].map((at) => ({ from: `2001:db8:1:${at}::1` }))],
    2,
    [2, 3, 4],
  ],
  ['an address in either spelling', [{ from: few }, { from: `::ffff:${many}` }, { from: many }], 1, [1, 2]],
  ['none where there are not too many', [{ from: many }], 1, []],
])('connections make room: %s', (_what, places, kept, closed) => {
  expect(closedOf(places, kept)).toEqual(closed);
});

test('those that were used a moment ago are not unused', () => {
  expect(closedOf([{ from: many }, { from: many }], 0, 500)).toEqual([]);
});
