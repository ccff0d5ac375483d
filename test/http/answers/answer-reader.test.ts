/** Who gives way where clients have not taken too much: those that do not read, before those that do. */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { queueReader } from '../../../src/adapters/system/socket-queues.ts';
import { peerName } from '../../../src/core/net/client-network.ts';
import { AnswerReader, inTheWay } from '../../../src/http/answers/answer-reader.ts';
import { eventually } from '../../harness/measure/eventually.ts';

/** A reader that has taken so much in the second between two looks, and has `held` left. */
function readerWith(userId: string, held: number, taken: number): AnswerReader {
  const handle = { bytesWritten: held, writeQueueSize: 0 };
  const reader = new AnswerReader({ _handle: handle } as unknown as Socket);
  reader.userId = userId;
  reader.saw(held, 0, 0);
  handle.bytesWritten += taken;
  reader.saw(held, 0, 1_000);
  return reader;
}

test.each<[string, readonly (readonly [userId: string, held: number, taken: number])[], number[]]>([
  [
    'the largest of the user with the most',
    [
      ['a', 40, 40],
      ['b', 30, 30],
      ['b', 31, 31],
    ],
    [2],
  ],
  [
    'one who reads nothing, before a larger one who reads',
    [
      ['honest', 90, 90],
      ['a', 10, 0],
      ['b', 20, 0],
    ],
    [2],
  ],
  [
    'one who takes next to nothing too',
    [
      ['honest', 9_000, 9_000],
      ['a', 1_000, 5],
    ],
    [1],
  ],
  [
    'those who read, where the others are not enough',
    [
      ['honest', 900, 900],
      ['a', 10, 0],
    ],
    [1, 0],
  ],
  [
    'nobody who has nothing',
    [
      ['a', 0, 0],
      ['a', 60, 60],
    ],
    [1],
  ],
])('who goes is %s', (_who, facts, expected) => {
  const readers = facts.map((fact) => readerWith(...fact));
  const held = readers.reduce((sum, { bytes }) => sum + bytes, 0);
  const limit = expected.length === 1 ? held - 1 : 0;
  expect(inTheWay(readers, limit).map((one) => readers.indexOf(one))).toEqual(expected);
});

test('what a client has acknowledged is its pace, also while its queue is always full', async () => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  const { port } = (await once(server, 'listening').then(() => server.address())) as AddressInfo;
  const client = connect(port, '127.0.0.1').pause();
  const [socket] = (await once(server, 'connection')) as [Socket];
  const reader = new AnswerReader(socket);
  const sent = (): number =>
    queueReader.readNow(port)?.sent.get(peerName('127.0.0.1', socket.remotePort ?? 0)) ?? 0;
  socket.write(Buffer.alloc(64 * 1024 * 1024));
  await eventually(async () => sent() > 0 || undefined);
  reader.saw(sent(), 0, 0);
  reader.saw(sent(), 0, 60_000);
  expect(reader.isSlow).toBe(true);
  client.resume();
  await eventually(async () => client.bytesRead > 32 * 1024 * 1024 || undefined);
  client.pause();
  reader.saw(sent(), 0, 61_000);
  expect(reader.isSlow).toBe(false);
  client.destroy();
  socket.destroy();
  server.close();
  await once(server, 'close');
});
