import { setTimeout as sleep } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import type { LogRow } from '../../core/log-row.ts';
import { RowSpool } from '../row-spool.ts';
import type { Entry, Flight } from './log-entry.ts';
import { encodeLogRow, insertLogRows } from './log-insert.ts';
import { recoverInBackground } from './log-recovery.ts';
import { isDataError } from './pool.ts';
import type { PostgresRequestLog, RequestLogOptions, RequestLogStats } from './request-log-contract.ts';
import { SpoolReplay } from './spool-replay.ts';

/**
 * Group commit in front, local spool behind. Rows that wait are inserted together by at most two writers;
 * a row that is not committed within `waitMs` is put into the spool and its request goes on. Once Postgres
 * is known not to answer, rows go straight to the spool until it does, and are replayed from there.
 * Every accepted row is in exactly one place: accepted = written + spooled + dropped + queueDepth.
 */

/** The longest the last byte of an answer waits for the commit. */
const waitMs = 50;
const maxBatchRows = 200;
const maxWriters = 2;
/** Below this a second writer would only make more, smaller transactions. */
const secondWriterAboveRows = 32;
/** A commit running for longer: Postgres is not answering, nothing waits for it any more. */
const stalledAfterMs = 250;
/** Rollup lanes of one replica: one per writer and one for the replay. */
const lanesPerReplica = maxWriters + 1;
const drainPollMs = 10;
const laneGroups = 8192; // times lanes fits a smallint

class GroupCommitLog implements PostgresRequestLog {
  readonly #options: RequestLogOptions;
  readonly #spool: RowSpool;
  readonly #replay: SpoolReplay;
  readonly #lane: number;
  readonly #closing = new AbortController();
  /** One place a writer. No Map: the tables that one outgrows keep dead requests alive through every scavenge. */
  readonly #flights: (Flight | null)[] = new Array<null>(maxWriters).fill(null);
  readonly #recovering: Promise<void>;
  #queue: Entry[] = [];
  #scheduled = false;
  #deadline: NodeJS.Timeout | null = null;
  #drained: Promise<void> | null = null;
  #away = false;
  #accepted = 0;
  #written = 0;
  #spooled = 0;
  #dropped = 0;
  #printed = 0;

  constructor(options: RequestLogOptions, spool: RowSpool) {
    this.#options = options;
    this.#spool = spool;
    this.#lane = (crc32(options.replica) % laneGroups) * lanesPerReplica;
    this.#replay = new SpoolReplay({
      pool: options.pool,
      spool,
      directory: options.spoolDir,
      maxBytes: options.spoolBytes,
      lane: this.#lane + maxWriters,
    });
    this.#recovering = recoverInBackground({
      pool: options.pool,
      spool,
      replay: this.#replay,
      lane: this.#lane + maxWriters,
      clock: options.clock,
      signal: this.#closing.signal,
      isAway: () => this.#away,
      onAway: () => this.#startAway(),
      onBack: () => {
        this.#away = this.#closing.signal.aborted;
      },
    });
  }

  record(row: LogRow): Promise<void> {
    this.#accepted += 1;
    return new Promise((resolve) => {
      const enteredAtMs = this.#options.clock.monotonicMs();
      const text = encodeLogRow(row);
      const entry: Entry = { text, enteredAtMs, resolve, settled: false, spooling: null };
      if (this.#away || this.#closing.signal.aborted) {
        void this.#spoolOrPrint(entry);
        return;
      }
      this.#queue.push(entry);
      this.#schedule();
      this.#deadline ??= setTimeout(() => this.#onDeadline(), waitMs);
    });
  }

  accepting(): boolean {
    return this.#options.whenFull === 'drop' || !this.#away || !this.#spool.full;
  }

  stats(): RequestLogStats {
    const waiting = this.#flyingEntries()
      .concat(this.#queue)
      .find((entry) => !entry.settled);
    return {
      accepted: this.#accepted,
      written: this.#written,
      spooled: this.#spooled,
      dropped: this.#dropped,
      replayed: this.#replay.replayed,
      bad: this.#replay.bad,
      printed: this.#printed,
      queueDepth: this.#accepted - this.#written - this.#spooled - this.#dropped,
      spoolBytes: this.#spool.bytes,
      oldestRowAgeMs:
        waiting === undefined ? 0 : Math.round(this.#options.clock.monotonicMs() - waiting.enteredAtMs),
      away: this.#away,
    };
  }

  /** What the writers have in hand. */
  #flyingEntries(): Entry[] {
    return this.#flights.flatMap((flight) => flight?.entries ?? []);
  }

  /** Rows recorded in one turn of the loop share a statement. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#startWriters();
    });
  }

  #startWriters(): void {
    for (let writer = 0; writer < maxWriters && !this.#away; writer += 1) {
      if (this.#flights[writer] !== null) continue;
      const needed = this.#flights.every((flight) => flight === null) ? 0 : secondWriterAboveRows;
      if (this.#queue.length <= needed) return;
      void this.#write(writer);
    }
  }

  async #write(writer: number): Promise<void> {
    const entries = this.#queue.splice(0, maxBatchRows).filter((entry) => !entry.settled);
    if (entries.length === 0) {
      this.#startWriters();
      return;
    }
    this.#flights[writer] = { entries, startedAtMs: this.#options.clock.monotonicMs() };
    const rows = entries.map((entry) => entry.text);
    try {
      const { insert = insertLogRows, pool } = this.#options;
      await insert(pool, rows, this.#lane + writer);
      for (const entry of entries) {
        if (this.#settle(entry)) this.#written += 1;
      }
    } catch (error) {
      // A row that Postgres refuses for its content is found by the replay, which takes batches apart.
      if (!isDataError(error)) this.#startAway();
      await Promise.all(entries.map((entry) => this.#spoolOrPrint(entry)));
    }
    this.#flights[writer] = null;
    this.#startWriters();
  }

  /** False when the row had already found its place. */
  #settle(entry: Entry): boolean {
    if (entry.settled) return false;
    entry.settled = true;
    entry.resolve();
    return true;
  }

  async #trySpool(entry: Entry): Promise<boolean> {
    if (entry.settled) return true;
    entry.spooling ??= this.#spool.append(entry.text);
    const kept = await entry.spooling;
    entry.spooling = null;
    if (kept && this.#settle(entry)) this.#spooled += 1;
    return kept;
  }

  async #spoolOrPrint(entry: Entry): Promise<void> {
    if (await this.#trySpool(entry)) return;
    if (!this.#settle(entry)) return;
    this.#dropped += 1;
    this.#print(entry.text);
  }

  #print(text: string): void {
    this.#printed += 1;
    this.#options.print(`{"event":"request_log_row","row":${text}}\n`);
  }

  /** Rows that waited long enough go to the spool; what the spool does not take goes on waiting for its commit. */
  #onDeadline(): void {
    const nowMs = this.#options.clock.monotonicMs();
    const stalled = this.#flights.some((flight) => nowMs - (flight?.startedAtMs ?? nowMs) > stalledAfterMs);
    if (stalled) this.#startAway();
    const waiting = [...this.#flyingEntries(), ...this.#queue].filter((entry) => !entry.settled);
    for (const entry of waiting) {
      if (nowMs - entry.enteredAtMs >= waitMs) void this.#trySpool(entry);
    }
    this.#deadline = null;
    const next = waiting.find((entry) => nowMs - entry.enteredAtMs < waitMs);
    const restMs = next === undefined ? waitMs : waitMs - (nowMs - next.enteredAtMs);
    if (waiting.length > 0) this.#deadline = setTimeout(() => this.#onDeadline(), Math.max(1, restMs));
  }

  /** From now on nothing waits for Postgres, until a probe finds it again. */
  #startAway(): void {
    this.#away = true;
    const queue = this.#queue;
    this.#queue = [];
    for (const entry of queue) void this.#spoolOrPrint(entry);
  }

  drain(timeoutMs: number): Promise<void> {
    this.#drained ??= this.#drain(timeoutMs);
    return this.#drained;
  }

  async #drain(timeoutMs: number): Promise<void> {
    const endsAtMs = this.#options.clock.monotonicMs() + timeoutMs;
    const leftMs = (): number => endsAtMs - this.#options.clock.monotonicMs();
    while (leftMs() > 0 && (this.stats().queueDepth > 0 || this.#spool.bytes > 0)) {
      await sleep(Math.min(drainPollMs, leftMs()));
    }
    this.#closing.abort();
    if (this.#deadline !== null) clearTimeout(this.#deadline);
    this.#startAway();
    await Promise.all(this.#flyingEntries().map((entry) => this.#spoolOrPrint(entry)));
    await this.#recovering;
    try {
      for await (const row of this.#spool.rows()) this.#print(row);
    } catch {
      // The spool cannot be read now; the next process to take its slot will try.
    }
    await this.#spool.close();
  }
}

/**
 * Opens the spool, starts to replay what earlier processes left in it, and takes rows. Postgres may be
 * away. Rejects when the spool folder cannot be used.
 */
export async function createRequestLog(options: RequestLogOptions): Promise<PostgresRequestLog> {
  const spool = await RowSpool.open({ directory: options.spoolDir, maxBytes: options.spoolBytes });
  return new GroupCommitLog(options, spool);
}
