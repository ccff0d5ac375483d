import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { Client } from 'undici';
import type { Reading } from './read-answer.ts';

/** Far above any head that is generated. */
const maxHeaderSize = 1024 * 1024;
/** Of the event loop. Nothing is waited for: undici connects, writes, reads and lets go of the connection in fewer. */
const turnsOfACall = 8;

/** A stream in place of the socket: whatever is written first is answered with the bytes, in one piece. */
function answeringWith(bytes: Buffer): Duplex {
  let isAnswered = false;
  return new Duplex({
    read: () => undefined,
    write(_request, _encoding, done) {
      if (!isAnswered && bytes.length > 0) this.push(bytes);
      isAnswered = true;
      done();
    },
  });
}

class Listener implements Dispatcher.DispatchHandler {
  isWhole = false;
  status = 0;
  fields: string[] = [];
  body = '';
  readonly #onOver: () => void;

  constructor(onOver: () => void) {
    this.#onOver = onOver;
  }

  onRequestStart(): void {}

  onResponseStart({ rawHeaders }: Dispatcher.DispatchController, status: number): void {
    this.status = status;
    this.fields = (rawHeaders as Buffer[])
      .map((text) => text.toString('latin1'))
      .map((text, at) => (at % 2 === 0 ? text.toLowerCase() : text));
  }

  onResponseData(_controller: Dispatcher.DispatchController, part: Buffer): void {
    this.body += part.toString('latin1');
  }

  onResponseEnd(): void {
    this.isWhole = true;
    this.#onOver();
  }

  onResponseError(): void {
    this.#onOver();
  }
}

/**
 * How undici's client understands them: its connection and its parser, over a stream in memory. It does not tell a cut
 * answer from one that is none: both are `refused`.
 */
export async function readByUndici(bytes: Buffer): Promise<Reading> {
  const stream = answeringWith(bytes);
  const client = new Client('http://vendor.test', {
    // A turn later: undici expects nobody to be connected at once.
    connect: (_options, callback) => void setImmediate(() => callback(null, stream as Socket)),
    maxHeaderSize,
    headersTimeout: 0,
    bodyTimeout: 0,
    // How long a connection is kept is the pool's matter, not that of the answer.
    keepAliveTimeoutThreshold: 0,
  });
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const listener = new Listener(resolve);
  client.dispatch({ path: '/', method: 'GET' }, listener);
  for (let turn = 0; turn < turnsOfACall; turn += 1) await new Promise(setImmediate);
  const kept = listener.isWhole && !stream.destroyed;
  stream.push(null);
  await over;
  await client.destroy();
  const { isWhole, status, fields, body } = listener;
  if (!isWhole) return { verdict: 'refused', status: 0, fields: [], body: '', kept: false };
  return { verdict: 'whole', status, fields, body, kept };
}
