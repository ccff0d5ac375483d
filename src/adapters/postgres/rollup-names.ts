import type { SettledRequest } from '../../core/settled-request.ts';
import { shownModel, shownProvider } from '../../core/settled-request.ts';
import { microsPerHour } from '../../core/timestamp.ts';

/** Statistics of one user and hour tell so many models apart, per replica; all further ones are `_other`. */
const maxNamesPerUser = 1_000;
/** Names of all users that are kept to be known again: some 10 MB. */
const maxKeptNames = 50_000;
const hourMicros = Number(microsPerHour);

/**
 * Which rows are summed under `_other`. An override may name any model, and each name of each hour is a rollup row that
 * is kept for more than a year: a user who sends a new name with every request would have as many rows as requests,
 * and statistics that take as long. Models of tiers come from the tables and need no limit. Counted in memory: Postgres
 * is asked nothing. A replica that starts anew in the same hour begins to count again.
 */
export class RollupNames {
  #hour = 0;
  readonly #known = new Set<string>();
  readonly #counts = new Map<string, number>();

  /** False where that cannot be told, by a bug: of such a row no line can be made either. */
  isOther(settled: SettledRequest): boolean {
    try {
      return this.#count(settled);
    } catch {
      return false;
    }
  }

  #count(settled: SettledRequest): boolean {
    const { userId, createdAtMicros, mode } = settled;
    if (mode !== 'override') return false;
    this.#begin(Math.floor(createdAtMicros / hourMicros));
    const name = `${userId} ${shownProvider(settled)} ${shownModel(settled)}`;
    if (this.#known.has(name)) return false;
    const count = this.#counts.get(userId) ?? 0;
    if (count >= maxNamesPerUser) return true;
    this.#counts.set(userId, count + 1);
    // What was known is counted once more when it comes again: users reach their limit earlier, but never pass it.
    if (this.#known.size >= maxKeptNames) this.#known.clear();
    this.#known.add(name);
    return false;
  }

  #begin(hour: number): void {
    if (hour <= this.#hour) return;
    this.#hour = hour;
    this.#known.clear();
    this.#counts.clear();
  }
}
