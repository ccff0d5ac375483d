import { escapeUnprintable } from '../../core/json/unprintable.ts';
import { storableJson } from '../../core/log/stored-json.ts';
import type { LogRow } from './encode-log-rows.ts';
import { lineIfTold, toldColumns } from './encode-log-rows.ts';
import type { RowPrinter } from './request-log-contract.ts';

/** Rows on stdout, one line of NDJSON each: the last resort for those that no store takes. */
export class PrintedRows {
  /** Of those that have left. */
  count = 0;
  readonly #printer: RowPrinter;

  constructor(printer: RowPrinter) {
    this.#printer = printer;
  }

  /** Of a row of which no line can be made: what can be told, and under `missing` the other columns, and why. */
  print(row: LogRow): void {
    const whole = lineIfTold(row);
    if (whole !== null) {
      this.#write(`"row":${whole}`);
      return;
    }
    const { line, missing } = toldColumns(row.settled);
    this.#write(`"row":${line},"missing":${storableJson(missing)}`);
  }

  /** `lines`: of `lineOf`. Resolves to false when they have not left and will not. */
  printLines(lines: readonly string[]): Promise<boolean> {
    for (const line of lines) this.#write(`"row":${line}`);
    return this.#printer.untilLeft();
  }

  #write(members: string): void {
    const line = escapeUnprintable(`{"event":"request_log_row",${members}}\n`);
    this.#printer.print(line, () => {
      this.count += 1;
    });
  }
}
