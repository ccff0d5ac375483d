import type { RequestLog } from '../../chat/ports.ts';
import { escapeUnprintable } from '../../core/json/unprintable.ts';
import { storableJson } from '../../core/log/stored-json.ts';
import type { SettledRequest } from '../../core/settled-request.ts';
import { lineIfTold, toldColumns } from '../postgres/encode-log-rows.ts';
import type { RequestLogStats } from '../postgres/request-log-contract.ts';

/** The way to stdout. */
export interface Lines {
  /** `onEnd` is told once: true when the system has the line, false when it never will. */
  write(line: string, onEnd: (isTaken: boolean) => void): void;
  flush(): void;
}

/** Of a row with a column that throws, a bug of ours: the others, and under `missing` why it is not there. */
function ndjsonOf(settled: SettledRequest): string {
  const whole = lineIfTold({ settled, isOther: false });
  if (whole !== null) return whole;
  const { line, missing } = toldColumns(settled);
  return `${line.slice(0, -1)},"missing":${storableJson(missing)}}`;
}

/** The log of a gateway without a database: rows as NDJSON. Those that come while nobody reads are dropped. */
export class RowLines implements RequestLog {
  readonly #lines: Lines;
  readonly #onKept: (waitedMs: number) => void;
  #accepted = 0;
  #written = 0;
  #dropped = 0;

  /** `onKept`: told of each row how many milliseconds its answer waited for it. */
  constructor(lines: Lines, onKept: (waitedMs: number) => void) {
    this.#lines = lines;
    this.#onKept = onKept;
  }

  async record(settled: SettledRequest): Promise<void> {
    this.#accepted += 1;
    this.#lines.write(`${escapeUnprintable(ndjsonOf(settled))}\n`, this.#count);
    this.#lines.flush();
    this.#onKept(0);
  }

  /** One for all rows. Not before stdout has answered: until then nobody knows whether the row is there. */
  readonly #count = (isTaken: boolean): void => {
    if (isTaken) this.#written += 1;
    else this.#dropped += 1;
  };

  accepting(): boolean {
    return true;
  }

  stats(): RequestLogStats {
    return {
      accepted: this.#accepted,
      written: this.#written,
      spooled: 0,
      dropped: this.#dropped,
      replayed: 0,
      bad: 0,
      printed: 0,
      queueDepth: this.#accepted - this.#written - this.#dropped,
      spoolBytes: 0,
      oldestRowAgeMs: 0,
      away: false,
    };
  }
}
