import { hourOf, microsPerHour } from '../timestamp.ts';
import type { CountedRequest } from './evidence-counts.ts';
import { addCounts, countRequest, noCounts } from './evidence-counts.ts';

/**
 * How far a report has come: the hour that is open, what was counted in it and before it, and the hashes that the next
 * lines follow. Who writes a report and who checks one go through the same steps.
 */
export class HourChain {
  /** Of the hours that are closed. */
  readonly totals = noCounts();
  /** Closed ones. */
  hours = 0;
  /** The beginning of the open hour, in microseconds since the epoch. */
  hourMicros: bigint;
  /** Of the open hour. */
  counts = noCounts();
  /** The hash of the last hour's line, or of the header: the open hour's own line follows it. */
  previous: string;
  /** The hash of the line above, which a request follows. */
  last: string;

  /** Stands behind the header of this hash. */
  constructor(sinceMicros: bigint, headerHash: string) {
    this.hourMicros = hourOf(sinceMicros);
    this.previous = headerHash;
    this.last = headerHash;
  }

  /** Of the request that comes next, through the whole report. */
  get nextNumber(): number {
    return this.totals.listed + this.counts.listed + 1;
  }

  /** A request of the open hour stands there, with this hash. */
  add(request: CountedRequest, hash: string): void {
    countRequest(this.counts, request);
    this.last = hash;
  }

  /** The line of the open hour stands there, with this hash: the next hour is open. */
  close(hash: string): void {
    addCounts(this.totals, this.counts);
    this.counts = noCounts();
    this.hours += 1;
    this.hourMicros += microsPerHour;
    this.previous = hash;
    this.last = hash;
  }
}
