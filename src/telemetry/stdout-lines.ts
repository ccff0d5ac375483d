/** Lines are written in blocks of this size, or when `flushEveryMs` have passed: a write of fewer costs each more. */
const minBlockLength = 16 * 1024;
const flushEveryMs = 250;
/** What waits for a stdout that nobody reads; beyond it lines are dropped rather than kept in memory. */
const maxWaitingBytes = 16 * 1024 * 1024;
/** A reader that has taken nothing for this long at the end is not coming back. */
const stalledAfterMs = 1000;
const closePollMs = 10;

/** As much of `process.stdout` as is used. */
export interface LineStream {
  readonly writableLength: number;
  write(text: string): boolean;
  on(event: 'error', listener: () => void): unknown;
}

/**
 * The one way to stdout. Nothing waits for the reader: as a Node stream, a pipe is written without blocking, so one
 * that stops or goes away delays neither a request nor the end of the process.
 */
export class StdoutLines {
  readonly #stream: LineStream;
  readonly #timer: NodeJS.Timeout;
  #block = '';

  constructor(stream: LineStream = process.stdout) {
    this.#stream = stream;
    // A stdout that went away is no reason to stop serving.
    stream.on('error', () => undefined);
    this.#timer = setInterval(() => this.flush(), flushEveryMs).unref();
  }

  /** Takes a line with its line feed. False: it was dropped, since nobody reads. */
  write(line: string): boolean {
    if (this.#stream.writableLength > maxWaitingBytes) return false;
    this.#block += line;
    if (this.#block.length >= minBlockLength) this.flush();
    return true;
  }

  /** For lines that exist nowhere else: never dropped. The caller bounds how many there are. */
  print(line: string): void {
    this.#block += line;
    this.flush();
  }

  flush(): void {
    if (this.#block === '') return;
    this.#stream.write(this.#block);
    this.#block = '';
  }

  /** Resolves when the reader has everything, or has taken nothing for a second. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.flush();
    let left = this.#stream.writableLength;
    let stalledMs = 0;
    while (left > 0 && stalledMs < stalledAfterMs) {
      await new Promise((resolve) => setTimeout(resolve, closePollMs));
      stalledMs = this.#stream.writableLength < left ? 0 : stalledMs + closePollMs;
      left = this.#stream.writableLength;
    }
  }
}
