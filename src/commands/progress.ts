import type { Period } from '../core/timestamp.ts';

/** Where progress goes: stderr, whose reader may be a person. */
export interface ProgressOut {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** On a terminal the line is drawn anew so often; elsewhere a line is written so often. */
const redrawMs = 200;
const lineMs = 10_000;
const barColumns = 30;

const count = new Intl.NumberFormat('en');

/**
 * How far work through a period of time is: a bar on a terminal, a line now and then elsewhere, and nothing at all for
 * work that is over before that.
 */
export class Progress {
  readonly #out: ProgressOut;
  readonly #period: Period;
  #saidAtMs = performance.now();
  #rows = 0;
  #drawn = false;

  constructor(period: Period, out: ProgressOut = process.stderr) {
    this.#period = period;
    this.#out = out;
  }

  /** So many more rows are done, up to this time. */
  passed(rows: number, micros: bigint): void {
    this.#rows += rows;
    const nowMs = performance.now();
    const { isTTY = false } = this.#out;
    if (nowMs - this.#saidAtMs < (isTTY ? redrawMs : lineMs)) return;
    this.#saidAtMs = nowMs;
    const { sinceMicros, untilMicros } = this.#period;
    const share = Number(micros - sinceMicros) / Number(untilMicros - sinceMicros);
    const text = `${String(Math.floor(share * 100)).padStart(3)} %, ${count.format(this.#rows)} rows`;
    if (!isTTY) this.#out.write(`${text.trim()}\n`);
    else {
      const full = '#'.repeat(Math.round(share * barColumns)).padEnd(barColumns, '.');
      this.#out.write(`\r[${full}] ${text}`);
      this.#drawn = true;
    }
  }

  /** Takes the bar away. */
  end(): void {
    if (this.#drawn) this.#out.write('\r\u001b[2K');
  }
}
