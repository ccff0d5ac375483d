/** What the kernel has of answers stays bounded when it cannot be asked for a while. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import type { QueueReader } from '../../../src/adapters/system/socket-queues.ts';
import { queueReader } from '../../../src/adapters/system/socket-queues.ts';
import { SentAnswers } from '../../../src/http/answers/sent-answers.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { sentBytes } from '../../harness/measure/sent-bytes.ts';

const mebibyte = 1024 * 1024;
const roomBytes = 4 * mebibyte;
const readers = 12;

/** Fails the first times it is asked, in either way. */
function failing(times: number, code: string): QueueReader {
  let left = times;
  const orFail = (): void => {
    left -= 1;
    if (left >= 0) throw Object.assign(new Error(code), { code });
  };
  return {
    ...queueReader,
    read: async (port) => {
      orFail();
      return queueReader.read(port);
    },
    readNow: (port) => {
      orFail();
      return queueReader.readNow(port);
    },
  };
}

const untold: QueueReader = { ...queueReader, read: async () => null, readNow: () => null };

/** Asks for 1 MiB on each of many connections and reads none of it; what the kernel has, and how many were reset. */
async function fill(queues: QueueReader, until: (held: number) => boolean): Promise<number> {
  const sent = new SentAnswers(roomBytes, queues);
  let reset = 0;
  sent.onLetGo = () => {
    reset += 1;
  };
  const page = Buffer.alloc(mebibyte);
  let written = 0;
  const server = createServer((_request, response) => {
    sent.answers('u', response);
    sent.wrote(page.length);
    response.end(page);
    written += 1;
  });
  sent.watch(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const clients = Array.from({ length: readers }, () => connect(port, '127.0.0.1').pause());
  for (const client of clients)
    client.on('error', () => undefined).write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  await eventually(async () => (written === readers && until(sentBytes(port))) || undefined);
  sent.stop();
  for (const client of clients) client.destroy();
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
  return reset;
}

test.each(['EMFILE', 'ENFILE', 'ENOMEM', 'EIO'])('it fails for a while: %s', async (code) => {
  expect(await fill(failing(2, code), (held) => held < roomBytes)).toBeGreaterThan(0);
});

test('a system that does not tell is not asked on', async () => {
  expect(await fill(untold, (held) => held > roomBytes)).toBe(0);
});
