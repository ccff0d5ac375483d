import type pg from 'pg';
import { ReplayProgress } from '../spool/replay-progress.ts';
import type { RowSpool } from '../spool/row-spool.ts';
import type { SpoolBatch } from '../spool/spool-segment.ts';
import type { SpoolFolder } from '../spool/spool-slots.ts';
import { abandonedSpools } from '../spool/spool-slots.ts';
import { insertLogRows } from './log-insert.ts';
import { isDataError, sqlState } from './pool.ts';
import { sqlStates } from './sql-states.ts';

export interface SpoolReplayOptions {
  readonly pool: pg.Pool;
  /** The spool of this process. */
  readonly spool: RowSpool;
  /** Where the spools of dead processes are looked for. */
  readonly folder: SpoolFolder;
  /** Told once of each slot or segment that cannot be read, and why. */
  readonly onBrokenSpool: (path: string, reason: string) => void;
  /** For rows that Postgres refuses and the disk does not keep. */
  readonly print: (rows: readonly string[]) => void;
}

const mostRows = 200;
const fewestRows = 5;

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
  /** In the spools of dead processes, which are opened anew each time. */
  readonly #progress = new ReplayProgress();

  constructor(options: SpoolReplayOptions) {
    this.#options = options;
  }

  /**
   * Empties the own spool and, if asked, those of dead processes; tells of each batch of which Postgres wrote a row.
   * Rejects when Postgres does not take rows or `signal` fires; the rest stays where it is. What cannot be read is no
   * reason: it is told of and stays.
   */
  async run(abandonedToo: boolean, signal: AbortSignal, onWritten: () => void): Promise<void> {
    const { spool, folder } = this.#options;
    if (spool.bytes > 0 || abandonedToo) await this.#empty(spool, abandonedToo, signal, onWritten);
    if (!abandonedToo) return;
    for await (const abandoned of this.#abandoned(folder)) {
      try {
        await this.#empty(abandoned, false, signal, onWritten);
      } finally {
        await abandoned.close();
      }
    }
  }

  async *#abandoned(folder: SpoolFolder): AsyncGenerator<RowSpool> {
    try {
      yield* abandonedSpools(folder, this.onBroken, this.#progress, this.#options.spool.disk);
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

  #empty(spool: RowSpool, stuckToo: boolean, signal: AbortSignal, onWritten: () => void): Promise<void> {
    const { print } = this.#options;
    const take = async (batch: SpoolBatch): Promise<void> => {
      const refused: string[] = [];
      for (let start = 0; start < batch.rows.length; ) {
        signal.throwIfAborted();
        const rows = batch.rows.slice(start, start + this.#rowsAtOnce);
        await this.#insert(rows, refused, onWritten);
        start += rows.length;
      }
      // Not before the whole batch is taken, and all at once: what was not will be handed out again.
      if (!(await spool.setAside([...refused, ...batch.bad]))) print(refused);
      this.bad += refused.length + batch.bad.length;
    };
    return spool.replay(take, this.onBroken, stuckToo);
  }

  /** Halves a batch until the rows that Postgres refuses stand alone; they join `refused`. */
  async #insert(rows: readonly string[], refused: string[], onWritten: () => void): Promise<void> {
    try {
      const written = await insertLogRows(this.#options.pool, rows);
      this.replayed += written;
      if (written > 0) onWritten();
      this.#rowsAtOnce = Math.min(this.#rowsAtOnce * 2, mostRows);
    } catch (error) {
      if (sqlState(error) === sqlStates.queryCanceled) {
        this.#rowsAtOnce = Math.max(Math.floor(this.#rowsAtOnce / 2), fewestRows);
      }
      if (!isDataError(error)) throw error;
      if (rows.length === 1) {
        refused.push(...rows);
        return;
      }
      const middle = Math.ceil(rows.length / 2);
      await this.#insert(rows.slice(0, middle), refused, onWritten);
      await this.#insert(rows.slice(middle), refused, onWritten);
    }
  }
}
