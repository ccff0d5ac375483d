import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';

/** Uses are written together, this long after the first of them. */
const gatherMs = 5_000;
/** At the start of an hour every active user's key is noted within a minute: more wait for the next statement. */
const maxPerStatement = 500;
/** What waits while Postgres is away; a use that is left out is noted by the next request of its hour. */
const maxWaiting = 20_000;

/**
 * Notes the hour in which service keys are presented. Accounts are read again at least once a minute while they are
 * used, and each reading says whether its hour is known: so requests cost nothing, a key costs one write an hour, and a
 * key that falls silent within the first minute of an hour may show the hour before.
 */
export class ServiceKeyUses {
  readonly #pool: pg.Pool;
  readonly #waiting = new Set<string>();
  readonly #closing = new AbortController();
  #writing: Promise<void> | null = null;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  /** By SHA-256 of the service key. */
  note(keyHash: string): void {
    if (this.#waiting.size < maxWaiting) this.#waiting.add(keyHash);
    this.#writing ??= this.#gather().finally(() => {
      this.#writing = null;
    });
  }

  /** Writes what is noted. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#writing;
  }

  async #gather(): Promise<void> {
    await sleep(gatherMs, undefined, { signal: this.#closing.signal, ref: false }).catch(() => undefined);
    while (this.#waiting.size > 0) {
      const hashes = [...this.#waiting].slice(0, maxPerStatement);
      for (const hash of hashes) this.#waiting.delete(hash);
      await this.#write(hashes);
    }
  }

  async #write(hashes: readonly string[]): Promise<void> {
    const keys = hashes.map((hash) => Buffer.from(hash, 'hex'));
    try {
      await this.#pool.query(
        `UPDATE service_keys SET last_used_at = date_trunc('hour', now(), 'UTC')
         WHERE key_hash = ANY($1) AND (last_used_at < date_trunc('hour', now(), 'UTC')) IS NOT FALSE`,
        [keys],
      );
    } catch {
      // Postgres is away: the next reading of each account notes it again.
    }
  }
}
