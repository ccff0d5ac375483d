/** However much servers send at once, a turn of the event loop reads for a bounded time, and each of them gets read. */
import type { Socket } from 'node:net';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { longestReadingMs } from '../../../src/adapters/upstream/reading-turns.ts';
import { createUpstreamClient } from '../../../src/adapters/upstream/upstream-client.ts';
import type { UpstreamControl } from '../../../src/chat/ports.ts';
import { outboundPolicy } from '../../../src/core/net/outbound-policy.ts';
import { manySockets } from '../../harness/gateway/upstream-client.ts';
import { callTo, listen } from './local-server.ts';

const vendors = 6;
const answerBytes = 512 * 1024;
/** Of each answer that are looked at. */
const readsSeen = 3;

/** Counts turns: what one poll of the sockets finds is between two of them. */
function countTurns(): () => number {
  let turns = 0;
  let running = true;
  const next = (): void => {
    turns += 1;
    if (running) setImmediate(next);
  };
  setImmediate(next);
  onTestFinished(() => {
    running = false;
  });
  return () => turns;
}

/** As long as a read of costly bytes takes at worst. */
function workFor(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs) Math.sqrt(untilMs);
}

async function vendorsThatWait(count: number) {
  const waiting: Socket[] = [];
  const arrived = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    socket.once('data', () => {
      waiting.push(socket);
      if (waiting.length === count) arrived.resolve();
    });
  });
  const { origin } = await listen(server);
  const head = `HTTP/1.1 200 OK\r\ncontent-length: ${answerBytes}\r\n\r\n`;
  return {
    origin,
    arrived: arrived.promise,
    answerAll: () => {
      for (const socket of waiting) socket.write(head + 'x'.repeat(answerBytes));
    },
  };
}

test.each([
  ['go on', false],
  ['pause and resume as their readers want', true],
])('reads that take too long share turns, each in its turn, where answers %s', async (_name, isPaced) => {
  const { origin, arrived, answerAll } = await vendorsThatWait(vendors);
  const client = createUpstreamClient(outboundPolicy('allow-private', [], []), manySockets);
  onTestFinished(() => client.close());
  const turnOf = countTurns();
  const reads: { vendor: number; turn: number }[] = [];
  const bytes = new Array<number>(vendors).fill(0);
  const all = Promise.withResolvers<void>();
  let ended = 0;
  for (let vendor = 0; vendor < vendors; vendor += 1) {
    const control: UpstreamControl = client.send(callTo(origin), {
      onHead: () => undefined,
      onData: (chunk) => {
        bytes[vendor] = (bytes[vendor] ?? 0) + chunk.length;
        const isSeen = reads.filter((read) => read.vendor === vendor).length < readsSeen;
        if (!isSeen) return;
        reads.push({ vendor, turn: turnOf() });
        workFor(longestReadingMs + 1);
        if (!isPaced) return;
        control.pause();
        setImmediate(() => control.resume());
      },
      onEnd: () => {
        ended += 1;
        if (ended === vendors) all.resolve();
      },
      onFailure: ({ message }) => all.reject(new Error(message)),
    });
  }
  await arrived;
  answerAll();
  await all.promise;

  expect(new Set(reads.map(({ turn }) => turn)).size).toBe(reads.length);
  const firsts = reads.slice(0, vendors).map(({ vendor }) => vendor);
  expect(new Set(firsts).size).toBe(vendors);
  expect(bytes).toEqual(new Array<number>(vendors).fill(answerBytes));
});
