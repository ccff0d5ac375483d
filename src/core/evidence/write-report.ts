import { formatTimestampMicros } from '../timestamp.ts';
import { addCounts, countRequest, noCounts } from './evidence-counts.ts';
import type { EvidenceRow } from './listed-request.ts';
import { listedRequest } from './listed-request.ts';
import type { ReportHeader } from './report-lines.ts';
import { hourOf, microsPerHour } from './report-lines.ts';
import { beginning, sealLine } from './sealed-line.ts';

export interface ReportPeriod {
  /** Microseconds since the epoch; `untilMicros` is exclusive. */
  readonly sinceMicros: bigint;
  readonly untilMicros: bigint;
}

/** What the header says beside the period. */
export type ReportFacts = Omit<ReportHeader, 'kind' | 'format' | 'from' | 'to' | 'hash'>;

/** All rows of an hour, by its beginning in microseconds since the epoch; none where it is not there. */
export type HourlyRows = ReadonlyMap<bigint, number>;

/**
 * A report, as text, in order: `begin`, then for each stretch of whole hours how many rows each has (`hours`) and those
 * that are listed (`requests`), then `end`. Every hour of the period gets its line, also where it has nothing to say.
 */
export class ReportWriter {
  readonly #period: ReportPeriod;
  readonly #totals = noCounts();
  #counts = noCounts();
  #rows: HourlyRows = new Map();
  /** The hour that is being written. */
  #hourMicros: bigint;
  #hours = 0;
  /** Of the last hour's line, or the header. */
  #previous = '';
  /** Of the last request, or of the line above the hour's first. */
  #last = '';

  constructor(period: ReportPeriod) {
    this.#period = period;
    this.#hourMicros = hourOf(period.sinceMicros);
  }

  begin({ gateway, ...facts }: ReportFacts): string {
    const { sinceMicros, untilMicros } = this.#period;
    const header = {
      kind: 'header',
      format: beginning,
      gateway,
      from: formatTimestampMicros(sinceMicros),
      to: formatTimestampMicros(untilMicros),
      ...facts,
    };
    const { line, hash } = sealLine(beginning, header);
    this.#previous = hash;
    this.#last = hash;
    return line;
  }

  /** The hours before `sinceMicros` are over; `rows` is of those that follow. */
  hours(sinceMicros: bigint, rows: HourlyRows): string {
    const text = this.#closeUntil(sinceMicros);
    this.#rows = rows;
    return text;
  }

  /** In the order of their time, and of their ids where that is the same. */
  requests(rows: readonly EvidenceRow[]): string {
    let text = '';
    for (const row of rows) {
      text += this.#closeUntil(hourOf(BigInt(row.created_micros)));
      const request = listedRequest(row, this.#totals.listed + this.#counts.listed + 1);
      countRequest(this.#counts, request);
      const { line, hash } = sealLine(this.#last, request);
      this.#last = hash;
      text += line;
    }
    return text;
  }

  /** `sign`: of the hash of the last line. */
  end(sign: (hash: string) => string): string {
    const text = this.#closeUntil(this.#period.untilMicros);
    const end = { kind: 'end', hours: this.#hours, ...this.#totals, previous: this.#previous };
    return text + sealLine(this.#previous, end, sign).line;
  }

  #closeUntil(micros: bigint): string {
    let text = '';
    while (this.#hourMicros < micros) text += this.#closeHour();
    return text;
  }

  #closeHour(): string {
    const counts = this.#counts;
    counts.rows = this.#rows.get(this.#hourMicros) ?? 0;
    const { line, hash } = sealLine(this.#previous, {
      kind: 'hour',
      hour: formatTimestampMicros(this.#hourMicros),
      ...counts,
      requests_hash: this.#last,
      previous: this.#previous,
    });
    addCounts(this.#totals, counts);
    this.#counts = noCounts();
    this.#hours += 1;
    this.#hourMicros += microsPerHour;
    this.#previous = hash;
    this.#last = hash;
    return line;
  }
}
