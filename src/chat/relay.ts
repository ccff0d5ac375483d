import type { ClientStream } from './client-stream.ts';
import type { OpenStream, StreamConsumer, StreamEnd } from './open-stream.ts';

/**
 * Carries an opened stream to the client, as fast as the client reads and no faster. `tee` sees every byte
 * that is sent. Resolves with the way the upstream ended; the last bytes are the caller's. The client's answer begins
 * with the bytes that are there, in the same turn: what throws here is then an error of the stream, which ends it.
 */
export function relay(
  stream: OpenStream,
  client: ClientStream,
  tee: ((bytes: Buffer) => void) | null,
): Promise<StreamEnd> {
  return new Promise((resolve) => {
    stream.attach(new Relay(stream, client, tee, resolve));
  });
}

class Relay implements StreamConsumer {
  readonly #stream: OpenStream;
  readonly #client: ClientStream;
  readonly #tee: ((bytes: Buffer) => void) | null;
  readonly #resolve: (end: StreamEnd) => void;
  #waiting = false;

  constructor(
    stream: OpenStream,
    client: ClientStream,
    tee: ((bytes: Buffer) => void) | null,
    resolve: (end: StreamEnd) => void,
  ) {
    this.#stream = stream;
    this.#client = client;
    this.#tee = tee;
    this.#resolve = resolve;
  }

  onBytes(bytes: Buffer): void {
    if (!this.#client.isOpen) this.#client.open();
    this.#tee?.(bytes);
    const hasRoom = this.#client.write(bytes);
    // The rest of the answer may have come in the same read, and be settled in this turn.
    this.#client.flush();
    if (hasRoom || this.#waiting) return;
    this.#waiting = true;
    this.#stream.pause();
    this.#client.onDrain(this.#onDrain, this.#stream.connectionName);
  }

  onEnd(end: StreamEnd): void {
    this.#resolve(end);
  }

  readonly #onDrain = (): void => {
    this.#waiting = false;
    this.#stream.resume();
  };
}
