import type { Period } from '../timestamp.ts';
import { formatTimestampMicros, hourOf } from '../timestamp.ts';
import { HourChain } from './hour-chain.ts';
import type { EvidenceRow } from './listed-request.ts';
import { listedRequest } from './listed-request.ts';
import type { ReportFacts } from './report-facts.ts';
import { beginning, sealLine } from './sealed-line.ts';

/** All rows of an hour, by its beginning in microseconds since the epoch; none where it is not there. */
export type HourlyRows = ReadonlyMap<bigint, number>;

/**
 * A report, as text, in order: `begin`, then for each stretch of whole hours how many rows each has (`hours`) and those
 * that are listed (`requests`), then `end`. Every hour of the period gets its line, also where it has nothing to say.
 */
export class ReportWriter {
  readonly #period: Period;
  #chain: HourChain;
  #rows: HourlyRows = new Map();

  constructor(period: Period) {
    this.#period = period;
    this.#chain = new HourChain(period.sinceMicros, beginning);
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
    this.#chain = new HourChain(sinceMicros, hash);
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
      text += this.#closeUntil(hourOf(row.created_micros));
      const request = listedRequest(row, this.#chain.nextNumber);
      const { line, hash } = sealLine(this.#chain.last, request);
      this.#chain.add(request, hash);
      text += line;
    }
    return text;
  }

  /** `sign`: of the hash of the last line. */
  end(sign: (hash: string) => string): string {
    const text = this.#closeUntil(this.#period.untilMicros);
    const { hours, totals, previous } = this.#chain;
    const end = { kind: 'end', hours, ...totals, previous };
    return text + sealLine(previous, end, sign).line;
  }

  #closeUntil(micros: bigint): string {
    let text = '';
    while (this.#chain.hourMicros < micros) text += this.#closeHour();
    return text;
  }

  #closeHour(): string {
    const { hourMicros, counts, last, previous } = this.#chain;
    counts.rows = this.#rows.get(hourMicros) ?? 0;
    const { line, hash } = sealLine(previous, {
      kind: 'hour',
      hour: formatTimestampMicros(hourMicros),
      ...counts,
      requests_hash: last,
      previous,
    });
    this.#chain.close(hash);
    return line;
  }
}
