import type pg from 'pg';
import type { RowSpool } from '../spool/row-spool.ts';
import type { SpoolBatch } from '../spool/spool-segment.ts';
import type { SpoolFolder } from '../spool/spool-slots.ts';
import { abandonedSpools } from '../spool/spool-slots.ts';
import { insertLogRows } from './log-insert.ts';
import { isDataError, sqlState } from './pool.ts';

export interface SpoolReplayOptions {
  readonly pool: pg.Pool;
  /** The spool of this process. */
  readonly spool: RowSpool;
  /** Where the spools of dead processes are looked for. */
  readonly folder: SpoolFolder;
  /** Told once of each slot or segment that cannot be read, and why. */
  readonly onBrokenSpool: (path: string, reason: string) => void;
}

const mostRows = 200;
const fewestRows = 5;
const statementTimeoutState = '57014';

/** Takes spooled rows to Postgres, once each whatever happens in between. Counts what it did. */
export class SpoolReplay {
  readonly #options: SpoolReplayOptions;
  /** Halved when a statement runs out of time, so that a slow Postgres takes little by little. */
  #rowsAtOnce = mostRows;
  /** Rows that Postgres lacked and has now: a batch whose answer was lost is sent again, and is no news then. */
  replayed = 0;
  /** Lines that are no rows, and rows Postgres refuses for their content. */
  bad = 0;
  readonly #broken = new Set<string>();

  constructor(options: SpoolReplayOptions) {
    this.#options = options;
  }

  /**
   * Empties the own spool and, if asked, those of dead processes. Rejects when Postgres does not take rows
   * or `signal` fires; the rest stays where it is. What cannot be read is no reason: it is told of and stays.
   */
  async run(abandonedToo: boolean, signal: AbortSignal): Promise<void> {
    const { spool, folder } = this.#options;
    if (spool.bytes > 0 || abandonedToo) await this.#empty(spool, abandonedToo, signal);
    if (!abandonedToo) return;
    for await (const abandoned of this.#abandoned(folder)) {
      try {
        await this.#empty(abandoned, false, signal);
      } finally {
        await abandoned.close();
      }
    }
  }

  async *#abandoned(folder: SpoolFolder): AsyncGenerator<RowSpool> {
    try {
      yield* abandonedSpools(folder, this.onBroken);
    } catch (error) {
      this.onBroken(folder.directory, error);
    }
  }

  /** Tells once of each path and reason. */
  readonly onBroken = (path: string, error: unknown): void => {
    const reason = error instanceof Error ? error.message : String(error);
    const known = `${path} ${reason}`;
    if (this.#broken.has(known)) return;
    this.#broken.add(known);
    this.#options.onBrokenSpool(path, reason);
  };

  #empty(spool: RowSpool, stuckToo: boolean, signal: AbortSignal): Promise<void> {
    const take = async (batch: SpoolBatch): Promise<void> => {
      signal.throwIfAborted();
      this.bad += batch.bad.length;
      for (let start = 0; start < batch.rows.length; ) {
        const rows = batch.rows.slice(start, start + this.#rowsAtOnce);
        await this.#insert(spool, rows);
        start += rows.length;
      }
    };
    return spool.replay(take, this.onBroken, stuckToo);
  }

  /** Halves a batch until the rows that Postgres refuses stand alone; those are set aside. */
  async #insert(spool: RowSpool, rows: readonly string[]): Promise<void> {
    if (rows.length === 0) return;
    try {
      this.replayed += await insertLogRows(this.#options.pool, rows);
      this.#rowsAtOnce = Math.min(this.#rowsAtOnce * 2, mostRows);
    } catch (error) {
      if (sqlState(error) === statementTimeoutState) {
        this.#rowsAtOnce = Math.max(Math.floor(this.#rowsAtOnce / 2), fewestRows);
      }
      if (!isDataError(error)) throw error;
      if (rows.length === 1) {
        this.bad += 1;
        await spool.setAside(rows);
        return;
      }
      const middle = Math.ceil(rows.length / 2);
      await this.#insert(spool, rows.slice(0, middle));
      await this.#insert(spool, rows.slice(middle));
    }
  }
}
