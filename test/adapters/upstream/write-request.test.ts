/** How a request is handed to its socket. */
import type { Socket } from 'node:net';
import { Writable } from 'node:stream';
import { expect, onTestFinished, test, vi } from 'vitest';
import { writeRequest } from '../../../src/adapters/upstream/write-request.ts';

const partBytes = 64 * 1024;

/** A socket that passes one write on when it is told to. */
class SlowSocket extends Writable {
  readonly taken: Buffer[] = [];
  #passOn: (() => void) | null = null;

  constructor() {
    super({ highWaterMark: 16 * 1024, decodeStrings: true });
  }

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    this.taken.push(bytes);
    this.#passOn = done;
  }

  /** Until nothing more is written; the largest number of bytes that it had to hold meanwhile. */
  async passAllOn(wait = (): void => undefined): Promise<number> {
    let most = 0;
    while (this.#passOn !== null) {
      wait();
      most = Math.max(most, this.writableLength);
      const passOn = this.#passOn;
      this.#passOn = null;
      passOn();
      await new Promise(setImmediate);
    }
    return most;
  }
}

test('of a body in bytes a part is written when the one before has left', async () => {
  const socket = new SlowSocket();
  const body = Buffer.alloc(80 * partBytes + 5, 'body ');
  writeRequest(socket as unknown as Socket, 'head\r\n\r\n', body);
  expect(await socket.passAllOn()).toBeLessThanOrEqual(16 * partBytes + 'head\r\n\r\n'.length);
  expect(Buffer.concat(socket.taken).equals(Buffer.concat([Buffer.from('head\r\n\r\n'), body]))).toBe(true);
});

test.each([
  // The first part waits for the head too.
  ['at once are larger each time', 49, [1, 2, 4, 8, 16, 16]],
  ['late stay small', 100, [1, 1, 1, 1, 1, 1]],
])('parts of 64 KiB that are taken %s', async (_when, takenAfterMs, sizes) => {
  let nowMs = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  onTestFinished(() => {
    vi.restoreAllMocks();
  });
  const socket = new SlowSocket();
  writeRequest(socket as unknown as Socket, 'head', Buffer.alloc(60 * partBytes));
  await socket.passAllOn(() => {
    nowMs += takenAfterMs;
  });
  expect(socket.taken.slice(1, 7).map(({ length }) => length / partBytes)).toEqual(sizes);
});

test.each([
  ['short', 'नमस्ते', 1],
  ['long', 'नमस्ते'.repeat(20_000), 2],
])('a %s text leaves whole', async (_length, body, writes) => {
  const socket = new SlowSocket();
  writeRequest(socket as unknown as Socket, 'head\r\n\r\n', body);
  await socket.passAllOn();
  expect(Buffer.concat(socket.taken).toString()).toBe(`head\r\n\r\n${body}`);
  expect(socket.taken).toHaveLength(writes);
});
