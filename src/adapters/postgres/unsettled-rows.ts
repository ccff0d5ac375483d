import type { LogRow } from './encode-log-rows.ts';

/** Where a row ended: committed by the group commit, lying in the spool, or printed because neither took it. */
export type RowPlace = 'committed' | 'spooled' | 'dropped';

/**
 * waiting: for its commit, in the queue or in a writer's hands. spooling: an append to the spool is under way as
 * well, and the commit may still come first. The places are final.
 */
export type RowState = 'waiting' | 'spooling' | RowPlace;

const moves: Readonly<Record<RowState, readonly RowState[]>> = {
  waiting: ['spooling', 'committed', 'dropped'],
  spooling: ['waiting', 'committed', 'spooled'],
  committed: [],
  spooled: [],
  dropped: [],
};

/** A row on its way to Postgres or the spool. */
export class PendingRow {
  readonly row: LogRow;
  readonly enteredAtMs: number;
  /** When the spool is asked to take it: first once it has waited long enough, then after each refusal. */
  spoolDueMs: number;
  /** The append in progress, in state spooling only; true: it lies in the file. */
  spooling: Promise<boolean> | null = null;
  older: PendingRow | null = null;
  newer: PendingRow | null = null;
  readonly #settled: () => void;
  #state: RowState = 'waiting';

  constructor(row: LogRow, enteredAtMs: number, spoolDueMs: number, settled: () => void) {
    this.row = row;
    this.enteredAtMs = enteredAtMs;
    this.spoolDueMs = spoolDueMs;
    this.#settled = settled;
  }

  get state(): RowState {
    return this.#state;
  }

  get isSettled(): boolean {
    return moves[this.#state].length === 0;
  }

  /** Throws for a move that cannot be: it would count the row twice. A final one lets the row's request go on. */
  to(next: RowState): void {
    if (!moves[this.#state].includes(next)) throw new Error(`a ${this.#state} log row cannot become ${next}`);
    this.#state = next;
    if (this.isSettled) this.#settled();
  }
}

/**
 * The rows that have no place yet, in the order of their arrival, whoever has them in hand, and how many found
 * which: accepted = committed + spooled + dropped + waiting. A list through the rows: a Map would keep dead requests
 * alive through every scavenge, and an array all that settled behind one row that does not.
 */
export class UnsettledRows {
  accepted = 0;
  waiting = 0;
  readonly settled: Record<RowPlace, number> = { committed: 0, spooled: 0, dropped: 0 };
  #oldest: PendingRow | null = null;
  #newest: PendingRow | null = null;

  get oldest(): PendingRow | null {
    return this.#oldest;
  }

  add(row: PendingRow): void {
    this.accepted += 1;
    this.waiting += 1;
    row.older = this.#newest;
    if (this.#newest === null) this.#oldest = row;
    else this.#newest.newer = row;
    this.#newest = row;
  }

  /** False when the row had already found its place. */
  settle(row: PendingRow, place: RowPlace): boolean {
    if (row.isSettled) return false;
    row.to(place);
    this.waiting -= 1;
    this.settled[place] += 1;
    if (row.older === null) this.#oldest = row.newer;
    else row.older.newer = row.newer;
    if (row.newer === null) this.#newest = row.older;
    else row.newer.older = row.older;
    // A settled row must not keep younger ones alive.
    row.older = null;
    row.newer = null;
    return true;
  }

  /** Oldest first. */
  all(): PendingRow[] {
    const rows: PendingRow[] = [];
    for (let row = this.#oldest; row !== null; row = row.newer) rows.push(row);
    return rows;
  }

  /**
   * The rows that entered at `enteredBeforeMs` or earlier, oldest first, and the first one that did not: the look
   * ends there, so its cost is that of the rows that are late.
   */
  overdue(enteredBeforeMs: number): {
    readonly rows: readonly PendingRow[];
    readonly next: PendingRow | null;
  } {
    const rows: PendingRow[] = [];
    let row = this.#oldest;
    for (; row !== null && row.enteredAtMs <= enteredBeforeMs; row = row.newer) rows.push(row);
    return { rows, next: row };
  }
}
