import type { PendingRow } from './unsettled-rows.ts';

/** From about 100 on a row costs Postgres no less, and whoever comes last waits for all of them. */
const maxBatchRows = 200;
/** One writes while the other's rows are on the way back; more would only divide the rows. */
const maxWriters = 2;
/** With fewer a second writer would only make more, smaller transactions, and with so many none waits for more. */
const enoughRows = 32;
/** A batch of so many shows that more rows are on their way: behind a smaller one nothing is waited for. */
const manyRows = 4;
/**
 * Turns of the loop, and time, for which rows are gathered behind a batch of many: a millisecond or two where each turn
 * has something to do. A batch of twice as many rows costs half as much a row, and what is answered together is worked
 * on together, with the same code at hand: at 32 requests at once, 0.3 of a bare proxy's CPU each, at 8 twice that.
 * Time bounds it where turns are long, since what waits too long goes to the spool.
 */
const gatherTurns = 8;
const gatherMs = 3;

/** Inserts rows, and finds a place for those that could not be. Never rejects. */
type InsertRows = (rows: readonly PendingRow[]) => Promise<void>;

/** `idle` → `writing` → `gathering`, behind a batch of many → `idle`. */
interface RowWriter {
  state: 'idle' | 'writing' | 'gathering';
  /** Monotonic milliseconds at which it began to write, or to gather. */
  sinceMs: number;
}

/**
 * The queue of rows, and the few that insert them: rows recorded in one turn of the loop share a statement, and so do
 * those that come while one is under way, or are gathered behind a batch of many.
 */
export class RowWriters {
  readonly #insert: InsertRows;
  readonly #nowMs: () => number;
  readonly #writers: readonly RowWriter[] = Array.from({ length: maxWriters }, () => ({
    state: 'idle',
    sinceMs: 0,
  }));
  /** Those that no writer has in hand yet. */
  #queue: PendingRow[] = [];
  #scheduled = false;

  constructor(insert: InsertRows, nowMs: () => number) {
    this.#insert = insert;
    this.#nowMs = nowMs;
  }

  add(row: PendingRow): void {
    this.#queue.push(row);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#start();
    });
  }

  /** Gives up the rows that no writer has in hand. */
  takeQueue(): readonly PendingRow[] {
    const queue = this.#queue;
    this.#queue = [];
    return queue;
  }

  /** A statement has been under way for longer than this. */
  isStalled(afterMs: number): boolean {
    const nowMs = this.#nowMs();
    return this.#writers.some(({ state, sinceMs }) => state === 'writing' && nowMs - sinceMs > afterMs);
  }

  #start(): void {
    for (const writer of this.#writers) {
      if (writer.state !== 'idle') continue;
      const needed = this.#writers.every(({ state }) => state === 'idle') ? 1 : enoughRows;
      if (this.#queue.length < needed) return;
      void this.#write(writer);
    }
  }

  async #write(writer: RowWriter): Promise<void> {
    const rows = this.#queue.splice(0, maxBatchRows).filter((row) => !row.isSettled);
    if (rows.length > 0) {
      this.#to(writer, 'writing');
      await this.#insert(rows);
    }
    if (rows.length < manyRows) this.#end(writer);
    else {
      this.#to(writer, 'gathering');
      this.#gather(writer, gatherTurns);
    }
  }

  #gather(writer: RowWriter, turns: number): void {
    const isEnough = this.#queue.length >= enoughRows || turns === 0;
    const isOver = isEnough || this.#nowMs() - writer.sinceMs > gatherMs;
    if (isOver) this.#end(writer);
    else setImmediate(() => this.#gather(writer, turns - 1));
  }

  #end(writer: RowWriter): void {
    this.#to(writer, 'idle');
    this.#start();
  }

  #to(writer: RowWriter, state: RowWriter['state']): void {
    writer.state = state;
    writer.sinceMs = this.#nowMs();
  }
}
