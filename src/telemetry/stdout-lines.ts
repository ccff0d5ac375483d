/** Lines are written in blocks of this size, or when `flushEveryMs` have passed: a write of fewer costs each more. */
const minBlockLength = 16 * 1024;
const flushEveryMs = 250;
/** What waits for a stdout that nobody reads; beyond it lines are dropped rather than kept in memory. */
const maxWaitingLength = 16 * 1024 * 1024;
/** The same of lines that exist nowhere else. A full heap would take more of them than a bound does. */
const maxPrintedLength = 2 * maxWaitingLength;
/** A reader that has taken nothing for this long is not waited for. */
const stalledAfterMs = 1000;

/** As much of `process.stdout` as is used. */
export interface LineStream {
  /** Of what was written and has not left. */
  readonly writableLength: number;
  /** `left` is called when the system has all of `text`, or with why it never will. */
  write(text: string, left: (error?: Error | null) => void): boolean;
  on(event: 'error', listener: () => void): unknown;
}

/** Told once of a line: true when the system has it, false when it never will. */
type OnEnd = (isTaken: boolean) => void;

interface Block {
  readonly text: string;
  /** Of the lines in it whose writers want to know. */
  readonly onEnd: readonly OnEnd[];
}

/**
 * The one way to stdout. Nothing waits for the reader: as a Node stream, a pipe is written without blocking, so one
 * that stops or goes away delays neither a request nor the end of the process.
 *
 * The stream has one block at a time, and the others wait here. It would put all that waits in it into one write, whose
 * end says too late that the reader takes anything.
 */
export class StdoutLines {
  readonly #stream: LineStream;
  readonly #timer: NodeJS.Timeout;
  #block = '';
  #onEnd: OnEnd[] = [];
  /** Behind the one that the stream has, oldest first. */
  #blocks: Block[] = [];
  /** Of all that has not left. */
  #waitingLength = 0;
  /** The reader of what was written last is there no more. */
  #isGone = false;
  #endsAtMs = Number.POSITIVE_INFINITY;
  /** Of those who wait until something leaves. */
  #movers: (() => void)[] = [];

  constructor(stream: LineStream = process.stdout) {
    this.#stream = stream;
    // A stdout that went away is no reason to stop serving.
    stream.on('error', () => undefined);
    this.#timer = setInterval(() => this.flush(), flushEveryMs).unref();
  }

  /** Takes a line with its line feed, or drops it at once, since nobody reads. */
  write(line: string, onEnd: OnEnd | null = null): void {
    if (this.#waitingLength > maxWaitingLength) {
      onEnd?.(false);
      return;
    }
    if (onEnd !== null) this.#onEnd.push(onEnd);
    this.#add(line);
    if (this.#blocks.length > 0) this.flush();
  }

  /**
   * For lines that exist nowhere else: dropped only where as many wait as memory may be spent on. `onLeft` is called
   * when the system has it, so never for one that is lost.
   */
  print(line: string, onLeft: () => void): void {
    if (this.#waitingLength > maxPrintedLength) return;
    this.#onEnd.push((isTaken) => {
      if (isTaken) onLeft();
    });
    this.#add(line);
    this.flush();
  }

  /** Hands the stream what it takes; the rest follows by itself. */
  flush(): void {
    while (this.#stream.writableLength === 0) {
      const block = this.#blocks.shift() ?? this.#endBlock();
      if (block === null) return;
      this.#stream.write(block.text, (error) => this.#left(block, error == null));
    }
  }

  /** At this monotonic time of `performance` nothing is waited for any more, whoever reads: the process has to end. */
  endBy(monotonicMs: number): void {
    this.#endsAtMs = monotonicMs;
  }

  /**
   * Resolves when all has left, to true; to false when the reader is gone, has taken nothing for a second, or there is
   * no time left.
   */
  async untilLeft(): Promise<boolean> {
    this.flush();
    while (this.#waitingLength > 0) if (!(await this.#moves())) return false;
    return !this.#isGone;
  }

  /** Waits as `untilLeft` does. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.untilLeft();
  }

  #add(line: string): void {
    this.#block += line;
    this.#waitingLength += line.length;
    if (this.#block.length < minBlockLength) return;
    const block = this.#endBlock();
    if (block !== null) this.#blocks.push(block);
  }

  #endBlock(): Block | null {
    if (this.#block === '') return null;
    const block = { text: this.#block, onEnd: this.#onEnd };
    this.#block = '';
    this.#onEnd = [];
    return block;
  }

  #left({ text, onEnd }: Block, isTaken: boolean): void {
    this.#waitingLength -= text.length;
    this.#isGone = !isTaken;
    for (const tell of onEnd) tell(isTaken);
    this.flush();
    for (const move of this.#movers.splice(0)) move();
  }

  /** Resolves to whether a block leaves in time. */
  #moves(): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const leftMs = Math.min(stalledAfterMs, this.#endsAtMs - performance.now());
    const timer = setTimeout(() => resolve(false), Math.max(0, leftMs));
    this.#movers.push(() => resolve(true));
    return promise.finally(() => clearTimeout(timer));
  }
}
