import { parseToFirstMistake } from '../first-mistake.ts';
import { formatTimestampMicros, hourOf, parseTimestampMicros } from '../timestamp.ts';
import { firstDifference } from './evidence-counts.ts';
import { fingerprint, isSignedBy } from './evidence-key.ts';
import { HourChain } from './hour-chain.ts';
import type { ReportEnd, ReportHeader, ReportLine, ReportRequest } from './report-lines.ts';
import { reportLineSchema } from './report-lines.ts';
import type { ReadLine } from './sealed-line.ts';
import { beginning, hashAfter, maxSealedLineBytes, readLine } from './sealed-line.ts';

/** The first place that is not as it was written. */
export interface BrokenLink {
  /** From 1. */
  readonly line: number;
  /** The hour in which it is found; null in the header and behind the last hour. */
  readonly hour: string | null;
  /** Of the request that stands there, if one does. */
  readonly id: number | null;
  readonly problem: string;
}

export type ReportVerdict =
  | { readonly kind: 'broken'; readonly at: BrokenLink }
  | { readonly kind: 'intact'; readonly header: ReportHeader; readonly end: ReportEnd };

type HourLine = Extract<ReportLine, { kind: 'hour' }>;

const micros = (instant: string): bigint => parseTimestampMicros(instant) ?? 0n;
const longer = `is longer than ${maxSealedLineBytes} bytes`;

const changed = 'was changed, or the line above it was';
const badCounts = 'has counts that do not add up to its requests';

/**
 * Goes through a report line by line and holds no more of it than the sums: each line must follow the one above it,
 * each hour the one before, counts must be those of the requests, and the end must be signed. After the first broken
 * link nothing is looked at. `publicKey`: as the header has to have it; null: that of whoever wrote the header.
 */
export class ReportCheck {
  /** Set at the first broken link. */
  broken: BrokenLink | null = null;
  header: ReportHeader | null = null;
  readonly #publicKey: string | null;
  #line = 0;
  #end: ReportEnd | null = null;
  #chain = new HourChain(0n, beginning);
  #sinceMicros = 0n;
  #untilMicros = 0n;
  #latest = { micros: -1n, id: -1 };

  constructor(publicKey: string | null) {
    this.#publicKey = publicKey;
  }

  /** Where the check has come to in the period of the report; null before its header. Microseconds since the epoch. */
  get progress(): Readonly<Record<'sinceMicros' | 'atMicros' | 'untilMicros', bigint>> | null {
    if (this.header === null) return null;
    return {
      sinceMicros: this.#sinceMicros,
      atMicros: this.#chain.hourMicros,
      untilMicros: this.#untilMicros,
    };
  }

  /** The next line, without its line feed. */
  take(bytes: Uint8Array): void {
    if (this.broken !== null) return;
    this.#line += 1;
    const read = bytes.length > maxSealedLineBytes ? longer : readLine(bytes);
    if (typeof read === 'string') {
      this.#break(read);
      return;
    }
    const parsed = parseToFirstMistake(reportLineSchema, read.value);
    if (!parsed.success) {
      const { path, message } = parsed.error.issues[0] ?? { path: [], message: '' };
      this.#break(`is no line of a report: ${[...path, message].map(String).join(': ')}`);
      return;
    }
    const line = parsed.data;
    const problem = this.#kindProblem(line, read) ?? this.#follow(line, read);
    if (problem !== null) this.#break(problem, line.kind === 'request' ? line.id : null);
  }

  /** `rest`: the bytes behind the last line feed, of which a whole file has none. */
  finish(rest: number): ReportVerdict {
    if (this.broken === null && (rest > 0 || this.#end === null)) {
      this.#line += 1;
      this.#break(
        rest > 0 ? 'is cut off: its line feed is missing' : 'is missing: the report was cut off here',
      );
    }
    if (this.broken !== null) return { kind: 'broken', at: this.broken };
    return { kind: 'intact', header: this.header as ReportHeader, end: this.#end as ReportEnd };
  }

  /** Whether a line of this kind may stand here at all. */
  #kindProblem({ kind }: ReportLine, { signature }: ReadLine): string | null {
    if (this.#end !== null) return 'stands behind the end';
    if (kind === 'header' && this.header !== null) return 'is a second header';
    if (kind !== 'header' && this.header === null) return 'is not a header';
    if (kind === 'end' && signature === null) return 'has no signature';
    return kind !== 'end' && signature !== null ? 'has a signature, as only the end has' : null;
  }

  #follow(line: ReportLine, read: ReadLine): string | null {
    switch (line.kind) {
      case 'header':
        return this.#begin(line, read);
      case 'request':
        return this.#request(line, read);
      case 'hour':
        return this.#hour(line, read);
      case 'end':
        return this.#finishWith(line, read);
    }
  }

  #begin(header: ReportHeader, { text, hash }: ReadLine): string | null {
    if (hashAfter(beginning, text) !== hash) return 'was changed: it is the header';
    const [from, to] = [micros(header.from), micros(header.to)];
    if (to <= from) return 'names a period that ends before it begins';
    if (this.#publicKey !== null && this.#publicKey !== header.public_key) {
      return `names another key than yours: ${fingerprint(header.public_key)}`;
    }
    this.header = header;
    this.#sinceMicros = from;
    this.#untilMicros = to;
    this.#chain = new HourChain(from, hash);
    return null;
  }

  #request(request: ReportRequest, { text, hash }: ReadLine): string | null {
    const problem = this.#placeProblem(request);
    if (problem !== null) return problem;
    if (hashAfter(this.#chain.last, text) !== hash) return changed;
    this.#latest = { micros: micros(request.created_at), id: request.id };
    this.#chain.add(request, hash);
    return null;
  }

  /** Whether a request of this number, time and user belongs here. */
  #placeProblem({ number, created_at, id, user_id }: ReportRequest): string | null {
    const createdMicros = micros(created_at);
    if (this.#isOver) return 'is behind the last hour';
    if (hourOf(createdMicros) !== this.#chain.hourMicros) {
      const hour = formatTimestampMicros(hourOf(createdMicros));
      return `is of the hour ${hour}: the hour that belongs here is missing or out of place`;
    }
    const expected = this.#chain.nextNumber;
    if (number !== expected) {
      const why = number > expected ? 'requests are missing or out of place' : 'it is out of place';
      return `is request ${number} where ${expected} belongs: ${why}`;
    }
    const { micros: latest, id: latestId } = this.#latest;
    const isEarlier = createdMicros < latest || (createdMicros === latest && id <= latestId);
    if (isEarlier || createdMicros < this.#sinceMicros || createdMicros >= this.#untilMicros) {
      return 'has a time that does not belong here';
    }
    const owner = this.header?.user_id ?? null;
    return owner === null || owner === user_id ? null : 'is of another user than the report';
  }

  #hour(line: HourLine, { text, hash }: ReadLine): string | null {
    if (hashAfter(line.previous, text) !== hash) return changed;
    if (this.#isOver || line.hour !== this.#hourText || line.previous !== this.#chain.previous) {
      const expected = this.#isOver ? 'nothing more' : this.#hourText;
      return `is the hour ${line.hour} where ${expected} belongs: hours are missing or out of place`;
    }
    const { counts, last } = this.#chain;
    if (line.listed !== counts.listed || line.requests_hash !== last) {
      return `lists ${line.listed} requests and ${counts.listed} stand above: some are missing or were changed`;
    }
    counts.rows = line.rows;
    const wrong = firstDifference(line, counts);
    if (wrong !== null || line.rows < line.listed) return `${badCounts}: ${wrong ?? 'rows'}`;
    this.#chain.close(hash);
    return null;
  }

  #finishWith(end: ReportEnd, { text, hash, signature }: ReadLine): string | null {
    if (hashAfter(end.previous, text) !== hash) return changed;
    if (!this.#isOver) return `is the end where the hour ${this.#hourText} belongs: hours are missing`;
    const { hours, totals, previous } = this.#chain;
    if (end.previous !== previous) return 'is the end of another report';
    const wrong = end.hours === hours ? firstDifference(end, totals) : 'hours';
    if (wrong !== null) return `${badCounts}: ${wrong}`;
    if (!isSignedBy(this.header?.public_key ?? '', hash, signature ?? '')) {
      return 'has a signature that the key of the header has not made: the report was written anew';
    }
    this.#end = end;
    return null;
  }

  get #isOver(): boolean {
    return this.#chain.hourMicros >= this.#untilMicros;
  }

  get #hourText(): string {
    return formatTimestampMicros(this.#chain.hourMicros);
  }

  #break(problem: string, id: number | null = null): void {
    const hour = this.header === null || this.#isOver ? null : this.#hourText;
    this.broken = { line: this.#line, hour, id, problem };
  }
}
