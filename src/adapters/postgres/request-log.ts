import { setTimeout as sleep } from 'node:timers/promises';
import type { SettledRequest } from '../../core/settled-request.ts';
import type { RowSpool } from '../spool/row-spool.ts';
import { openSpool } from '../spool/spool-slots.ts';
import { lineIfTold } from './encode-log-rows.ts';
import type { InsertNewRows } from './log-insert.ts';
import { recoverInBackground } from './log-recovery.ts';
import type { LogState } from './log-state.ts';
import { moved } from './log-state.ts';
import { isDataError } from './pool.ts';
import { PrintedRows } from './printed-rows.ts';
import type { PostgresRequestLog, RequestLogOptions, RequestLogStats } from './request-log-contract.ts';
import { RollupNames } from './rollup-names.ts';
import { RowWriters } from './row-writers.ts';
import { SpoolReplay } from './spool-replay.ts';
import { SpoolShares } from './spool-shares.ts';
import { PendingRow, UnsettledRows } from './unsettled-rows.ts';

/** The longest the last byte of an answer waits for the commit. */
const waitMs = 50;
/** A commit running for longer: Postgres is not answering, nothing waits for it any more. */
const stalledAfterMs = 250;
const drainPollMs = 10;
const stalled = new Error(`Postgres has not committed for ${stalledAfterMs} ms.`);

/**
 * Group commit in front (row-writers.ts), local spool behind. A row that is not committed within `waitMs` is put into
 * the spool and its request goes on. The log's states are in log-state.ts, those of a row in unsettled-rows.ts: every
 * accepted row is in exactly one place, accepted = committed + spooled + dropped + waiting, and none waits longer than
 * `waitMs` for its commit before the spool is asked to take it.
 */
class GroupCommitLog implements PostgresRequestLog {
  readonly #options: RequestLogOptions;
  readonly #spool: RowSpool;
  #shares: SpoolShares;
  readonly #replay: SpoolReplay;
  readonly #insert: InsertNewRows;
  readonly #names = new RollupNames();
  readonly #closing = new AbortController();
  readonly #writers: RowWriters;
  readonly #recovering: Promise<void>;
  readonly #unsettled = new UnsettledRows();
  readonly #printed: PrintedRows;
  #state: LogState = 'committing';
  #deadline: NodeJS.Timeout | null = null;
  #drained: Promise<void> | null = null;

  constructor(options: RequestLogOptions, spool: RowSpool) {
    this.#options = options;
    this.#spool = spool;
    this.#shares = new SpoolShares(options.spool.maxBytes);
    this.#printed = new PrintedRows(options.printer);
    this.#insert = options.insert;
    this.#writers = new RowWriters(
      (rows) => this.#write(rows),
      () => this.#nowMs(),
    );
    this.#replay = new SpoolReplay({
      pool: options.pool,
      spool,
      folder: options.spool,
      onBrokenSpool: options.onBrokenSpool,
      print: (rows) => void this.#printed.printLines(rows),
    });
    this.#recovering = recoverInBackground({
      pool: options.pool,
      spool,
      replay: this.#replay,
      clock: options.clock,
      signal: this.#closing.signal,
      isAway: () => this.#state === 'away',
      onAway: (cause) => this.#startAway(cause),
      onBack: () => this.#comeBack(),
    });
  }

  record(settled: SettledRequest): Promise<void> {
    return new Promise((resolve) => {
      const nowMs = this.#nowMs();
      const row = { settled, isOther: this.#names.isOther(settled) };
      const pending = new PendingRow(row, nowMs, nowMs + waitMs, () => {
        this.#options.onKept?.(this.#nowMs() - nowMs);
        resolve();
      });
      this.#unsettled.add(pending);
      if (this.#state !== 'committing') {
        void this.#spoolOrPrint(pending);
        return;
      }
      this.#writers.add(pending);
      this.#deadline ??= setTimeout(() => this.#onDeadline(), waitMs);
    });
  }

  accepting(userId: string): boolean {
    if (this.#options.whenFull === 'drop' || this.#state === 'committing') return true;
    const leftBytes = this.#options.spool.maxBytes - this.#spool.bytes;
    return !this.#spool.full && !this.#shares.isSpent(userId, leftBytes);
  }

  stats(): RequestLogStats {
    const { accepted, waiting, oldest, settled } = this.#unsettled;
    return {
      accepted,
      written: settled.committed,
      spooled: settled.spooled,
      dropped: settled.dropped,
      replayed: this.#replay.replayed,
      bad: this.#replay.bad,
      printed: this.#printed.count,
      queueDepth: waiting,
      spoolBytes: this.#spool.bytes,
      oldestRowAgeMs: oldest === null ? 0 : Math.round(this.#nowMs() - oldest.enteredAtMs),
      away: this.#state !== 'committing',
    };
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  #to(next: LogState): void {
    this.#state = moved(this.#state, next);
  }

  async #write(rows: readonly PendingRow[]): Promise<void> {
    try {
      const untold = await this.#insert(rows.map(({ row }) => row));
      rows.forEach((row, at) => {
        if (untold.includes(at)) this.#drop(row);
        else this.#unsettled.settle(row, 'committed');
      });
    } catch (error) {
      // A row that Postgres refuses for its content is found by the replay, which takes batches apart.
      if (!isDataError(error)) this.#startAway(error);
      await Promise.all(rows.map((row) => this.#spoolOrPrint(row)));
    }
  }

  /** True when the row has its place: the spool, before that its commit, or none. Who asks meanwhile shares it. */
  #trySpool(row: PendingRow): Promise<boolean> {
    row.spooling ??= this.#appendToSpool(row);
    return row.spooling;
  }

  async #appendToSpool(row: PendingRow): Promise<boolean> {
    if (row.isSettled) return true;
    const line = lineIfTold(row.row);
    if (line === null) return this.#drop(row);
    row.to('spooling');
    if (this.#spool.empty) this.#shares = new SpoolShares(this.#options.spool.maxBytes);
    const kept = await this.#spool.append(line);
    if (kept) this.#shares.note(row.row.settled.userId, Buffer.byteLength(line));
    row.spooling = null;
    if (this.#spool.full && this.#spool.refusal === null) this.#options.onSpoolFull?.();
    if (row.isSettled) return true;
    if (kept) return this.#unsettled.settle(row, 'spooled');
    if (this.#spool.refusal !== null) this.#options.onSpoolRefuses?.(this.#spool.refusal);
    row.to('waiting');
    row.spoolDueMs = this.#nowMs() + waitMs;
    return false;
  }

  async #spoolOrPrint(row: PendingRow): Promise<void> {
    if (!(await this.#trySpool(row))) this.#drop(row);
  }

  /** True when the row has its place: stdout, unless it has one already. One that is on its way to the spool waits. */
  #drop(row: PendingRow): boolean {
    if (row.state !== 'waiting') return row.isSettled;
    this.#unsettled.settle(row, 'dropped');
    this.#printed.print(row.row);
    return true;
  }

  /** Rows that waited long enough go to the spool; what the spool does not take goes on waiting for its commit. */
  #onDeadline(): void {
    const nowMs = this.#nowMs();
    if (this.#writers.isStalled(stalledAfterMs)) this.#startAway(stalled);
    const { rows, next } = this.#unsettled.overdue(nowMs - waitMs);
    let dueMs = next?.spoolDueMs ?? nowMs + waitMs;
    for (const row of rows) {
      if (row.spoolDueMs <= nowMs) void this.#trySpool(row);
      else dueMs = Math.min(dueMs, row.spoolDueMs);
    }
    this.#deadline =
      this.#unsettled.waiting === 0 ? null : setTimeout(() => this.#onDeadline(), Math.max(1, dueMs - nowMs));
  }

  /** From now on nothing waits for Postgres, until it has taken a row again. */
  #startAway(cause: unknown): void {
    if (this.#state === 'committing') this.#to('away');
    if (this.#state === 'away') this.#options.onAway?.(cause);
    for (const row of this.#writers.takeQueue()) void this.#spoolOrPrint(row);
  }

  /** A row has been written again. */
  #comeBack(): void {
    if (this.#state !== 'away') return;
    this.#to('committing');
    this.#options.onBack?.();
  }

  drain(timeoutMs: number): Promise<void> {
    this.#drained ??= this.#drain(timeoutMs);
    return this.#drained;
  }

  async #drain(timeoutMs: number): Promise<void> {
    const endsAtMs = this.#nowMs() + timeoutMs;
    const printedBefore = this.#printed.count;
    const leftMs = (): number => endsAtMs - this.#nowMs();
    // A row may be committed while it is on its way into the spool: there it is replayed too, and not left behind.
    while (leftMs() > 0 && (this.#unsettled.waiting > 0 || !this.#spool.empty))
      await sleep(Math.min(drainPollMs, leftMs()));
    this.#to('closing');
    this.#closing.abort();
    if (this.#deadline !== null) clearTimeout(this.#deadline);
    this.#writers.takeQueue();
    await Promise.all(this.#unsettled.all().map((row) => this.#spoolOrPrint(row)));
    await this.#recovering;
    // What cannot be read now, the next process to take its slot will try.
    for await (const rows of this.#spool.rows(this.#replay.onBroken))
      if (!(await this.#printed.printLines(rows))) break;
    const printed = this.#printed.count - printedBefore;
    if (printed > 0) this.#options.onPrintedAtEnd?.(printed);
    await this.#spool.close();
  }
}

/**
 * Opens the spool, starts to replay what earlier processes left in it, and takes rows. Postgres may be
 * away. Rejects when the spool folder cannot be used.
 */
export async function createRequestLog(options: RequestLogOptions): Promise<PostgresRequestLog> {
  return new GroupCommitLog(options, await openSpool(options.spool));
}
