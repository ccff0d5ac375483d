import { randomUUID } from 'node:crypto';
import { within } from './within.ts';

/** On it each listener is told something of its own: only what another session sends proves that notifications come. */
export const proofChannel = 'gw_listening_proof';
/** From one session to the other it is milliseconds. */
const proofTimeoutMs = 2000;

/** LISTEN was accepted, and nothing comes: a pooler gave it to a connection that is somebody else's by now. */
class DeafConnection extends Error {
  constructor() {
    super(
      'LISTEN was accepted, but no notification arrives: a pooler in transaction mode needs DATABASE_DIRECT_URL past it',
    );
  }
}

/** Proves of one connection that it hears what others notify. */
export class ListeningProof {
  readonly #payload = randomUUID();
  readonly #heard = Promise.withResolvers<void>();

  /** For each notification of the channel: they reach all replicas. */
  readonly onNotified = (payload: string): void => {
    if (payload === this.#payload) this.#heard.resolve();
  };

  /**
   * `notify` speaks over another connection. Rejects when that is not heard. False: nobody could be asked to speak, so
   * nothing is proven yet, and nothing held against the connection.
   */
  async prove(
    notify: (channel: string, payload: string) => Promise<unknown>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const isSent = await within(notify(proofChannel, this.#payload), proofTimeoutMs, signal).then(
      () => true,
      () => false,
    );
    if (!isSent) return false;
    await within(this.#heard.promise, proofTimeoutMs, signal).catch((error: unknown) => {
      throw signal.aborted ? error : new DeafConnection();
    });
    return true;
  }
}
