import type pg from 'pg';
import type { Clock, RequestLog } from '../../chat/ports.ts';
import type { SpoolFolder } from '../spool/spool-slots.ts';
import type { InsertNewRows } from './log-insert.ts';

/** The last resort for a row: stdout. */
export interface RowPrinter {
  /** Takes one line of NDJSON; `onLeft` is called once it has left. */
  print(line: string, onLeft: () => void): void;
  /** Resolves when all has left, to true; to false when nobody takes it, or there is no time left. */
  untilLeft(): Promise<boolean>;
}

export interface RequestLogStats {
  /** Rows handed to `record`. */
  readonly accepted: number;
  /** Rows committed by the group commit; of a sidecar without a database: written to stdout. */
  readonly written: number;
  /** Rows put into the spool, whether replayed since or not. */
  readonly spooled: number;
  /** Rows that neither Postgres nor the spool took, printed; of such a sidecar: not taken by stdout, gone. */
  readonly dropped: number;
  /** Rows taken from a spool to Postgres, those of dead processes included. */
  readonly replayed: number;
  /**
   * Spool lines that were torn or that Postgres refuses for their content, each once; kept in `bad.ndjson`, or, those
   * that are rows, printed where it takes no more.
   */
  readonly bad: number;
  /** Rows that left through stdout because no store took them, or at the end because Postgres did not. */
  readonly printed: number;
  /** Rows that are neither committed nor spooled yet. */
  readonly queueDepth: number;
  /** Of what can be read. */
  readonly spoolBytes: number;
  /** 0 when none waits. */
  readonly oldestRowAgeMs: number;
  /** True while rows go straight to the spool. */
  readonly away: boolean;
}

export interface RequestLogOptions {
  /**
   * Its own small pool (3 connections are used), so that no page query delays a commit; direct connections,
   * because the insert is a prepared statement.
   */
  readonly pool: pg.Pool;
  readonly spool: SpoolFolder;
  /** Told once of each slot or segment that cannot be read or removed, or that somebody removed, and why. */
  readonly onBrokenSpool: (path: string, reason: string) => void;
  /** When the spool is full: refuse new chat requests, or serve them and print their rows. */
  readonly whenFull: 'refuse' | 'drop';
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly printer: RowPrinter;
  /** Told of each row that has its place how long that took; must not throw. */
  readonly onKept?: (waitedMs: number) => void;
  /** Told when rows no longer reach Postgres, and again by each look while they do not; must not throw. */
  readonly onAway?: (cause: unknown) => void;
  /** Told of each row that the spool's disk does not take, and why; must not throw. */
  readonly onSpoolRefuses?: (reason: string) => void;
  /** Told of each row that finds or makes the spool full; must not throw. */
  readonly onSpoolFull?: () => void;
  /** Told when one did again; must not throw. */
  readonly onBack?: () => void;
  /** Told by `drain` how many rows it printed, if any; must not throw. */
  readonly onPrintedAtEnd?: (rows: number) => void;
  /** The group commit: `newRowsInto` of the pool, watched. */
  readonly insert: InsertNewRows;
}

export interface PostgresRequestLog extends RequestLog {
  stats(): RequestLogStats;
  /**
   * For the end of the process: writes what waits and replays the spool, within `timeoutMs`. What Postgres did not
   * take stays in the spool and is printed as well, for as long as somebody takes it. Never rejects; `record` still
   * works, by printing.
   */
  drain(timeoutMs: number): Promise<void>;
}
