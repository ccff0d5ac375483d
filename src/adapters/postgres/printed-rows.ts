import { storableJson } from '../../core/log/stored-json.ts';
import type { LogRow } from './encode-log-rows.ts';
import { lineIfTold, toldColumns } from './encode-log-rows.ts';

/** Rows on stdout, one line of NDJSON each: the last resort for those that no store takes. */
export class PrintedRows {
  count = 0;
  readonly #print: (line: string) => void;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  /** Of a row of which no line can be made: what can be told, and under `missing` the other columns, and why. */
  print(row: LogRow): void {
    const whole = lineIfTold(row);
    if (whole !== null) {
      this.printLine(whole);
      return;
    }
    const { line, missing } = toldColumns(row.settled);
    this.#write(`"row":${line},"missing":${storableJson(missing)}`);
  }

  /** `line`: of `lineOf`. */
  printLine(line: string): void {
    this.#write(`"row":${line}`);
  }

  #write(members: string): void {
    this.count += 1;
    this.#print(`{"event":"request_log_row",${members}}\n`);
  }
}
