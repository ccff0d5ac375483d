import { setTimeout as sleep } from 'node:timers/promises';
import { StoreAway } from '../../core/store-away.ts';

/** So often it is asked whether Postgres is back. */
const probeIntervalMs = 250;

/**
 * Whether Postgres answers nobody. While it does not, known users do not wait for it, and one read finds its return.
 */
export class AwayWatch {
  readonly #closing = new AbortController();
  #isAway = false;
  #isProbing = false;

  get isAway(): boolean {
    return this.#isAway;
  }

  /** A read was answered. */
  answered(): void {
    this.#isAway = false;
  }

  /** From now on it is away, until it answers `read`, or anything else. */
  began(read: () => Promise<unknown>): void {
    this.#isAway = true;
    if (this.#isProbing) return;
    this.#isProbing = true;
    void this.#probe(read);
  }

  close(): void {
    this.#closing.abort();
  }

  /** By the read that failed: one of its tables may be locked, where anything less is answered. */
  async #probe(read: () => Promise<unknown>): Promise<void> {
    while (this.#isAway) {
      const options = { signal: this.#closing.signal, ref: false };
      const isClosing = await sleep(probeIntervalMs, false, options).catch(() => true);
      if (isClosing) return;
      // What else is wrong with this one account is told to whoever asks for it.
      const isSilent = await read().then(
        () => false,
        (error: unknown) => error instanceof StoreAway,
      );
      if (!isSilent) this.#isAway = false;
    }
    // With the last look: who begins anew in between would be watched by nobody.
    this.#isProbing = false;
  }
}
