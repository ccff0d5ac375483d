import type { TransportFailure, UpstreamHead, UpstreamListener } from './ports.ts';

/**
 * Stands between the transport and a listener: what the listener throws is a bug of ours, handed to `onBug`. Thrown
 * into the transport it would end somewhere in the vendor's socket, and the request nowhere.
 */
export class BugGuard implements UpstreamListener {
  readonly #listener: UpstreamListener;
  readonly #onBug: (cause: unknown) => void;

  constructor(listener: UpstreamListener, onBug: (cause: unknown) => void) {
    this.#listener = listener;
    this.#onBug = onBug;
  }

  onHead(head: UpstreamHead): void {
    try {
      this.#listener.onHead(head);
    } catch (cause) {
      this.#onBug(cause);
    }
  }

  onData(chunk: Buffer): void {
    try {
      this.#listener.onData(chunk);
    } catch (cause) {
      this.#onBug(cause);
    }
  }

  onEnd(): void {
    try {
      this.#listener.onEnd();
    } catch (cause) {
      this.#onBug(cause);
    }
  }

  onFailure(failure: TransportFailure): void {
    try {
      this.#listener.onFailure(failure);
    } catch (cause) {
      this.#onBug(cause);
    }
  }
}
