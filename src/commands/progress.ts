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

/** How much of a period lies before this time, 0 to 1. */
export function shareOf({ sinceMicros, untilMicros }: Period, micros: bigint): number {
  return Number(micros - sinceMicros) / Number(untilMicros - sinceMicros);
}

/**
 * How far long work is: a bar on a terminal, a line now and then elsewhere, and nothing at all for work that is over
 * before that.
 */
export class Progress {
  readonly #out: ProgressOut;
  readonly #unit: string;
  #saidAtMs = performance.now();
  #done = 0;
  #drawn = false;

  /** `unit` is what is counted, in the plural. */
  constructor(unit = 'rows', out: ProgressOut = process.stderr) {
    this.#unit = unit;
    this.#out = out;
  }

  /** So many more are done, and with them this share of the whole, 0 to 1. */
  passed(more: number, share: number): void {
    this.#done += more;
    const nowMs = performance.now();
    const { isTTY = false } = this.#out;
    if (nowMs - this.#saidAtMs < (isTTY ? redrawMs : lineMs)) return;
    this.#saidAtMs = nowMs;
    const text = `${String(Math.floor(share * 100)).padStart(3)} %, ${count.format(this.#done)} ${this.#unit}`;
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
