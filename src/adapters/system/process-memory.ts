import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Of the container's limit: the rest is for what the kernel keeps for it, and for what comes between two looks. */
export const guardedMemoryShare = 0.85;
/** Reading it takes 30 µs, and much can come in a second. */
const readEveryMs = 100;
/** A full collection takes the event loop 50 to 250 ms. */
const collectEveryMs = 10_000;
/** One that freed less of the limit than this is not soon done again: the allocator keeps what is there. */
const worthwhileShare = 0.05;
const longestCollectEveryMs = 300_000;
/** Below it a large body is refused for its own size, and garbage is not what fills the memory. */
const collectFromShare = 0.7;

/**
 * Bytes that this process holds and the system cannot take back from it: heap, Buffers and what native code keeps, but
 * no pages of files. Where Linux does not tell, all of its resident memory.
 */
export function anonymousBytes(statusFile = '/proc/self/status'): number {
  try {
    const kibibytes = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(statusFile, 'latin1'))?.[1];
    if (kibibytes !== undefined) return Number(kibibytes) * 1024;
  } catch {
    // No such file: not Linux.
  }
  return process.memoryUsage.rss();
}

/** What the container may hold before its processes are killed; null without such a limit. */
export function containerBytes(): number | null {
  const bytes = process.constrainedMemory();
  return bytes > 0 && bytes < totalmem() ? bytes : null;
}

/**
 * Has V8 free what nobody needs any more. By itself it does so when its own limit comes near, and knows nothing of the
 * container's: a burst that is over would leave its garbage there for as long as little else comes.
 */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect === 'function') collect();
}

export interface ProcessMemoryIo {
  monotonicMs(): number;
  /** Bytes that are held now. */
  read(): number;
  collect(): void;
}

const system = { read: anonymousBytes, collect: collectGarbage };

/** How much of its memory this process uses. No budget knows it: each counts what it is for, none what all hold. */
export class ProcessMemory {
  readonly #limitBytes: number;
  readonly #io: ProcessMemoryIo;
  #share = 0;
  #nextReadMs = 0;
  #nextCollectionMs = 0;
  #collectEveryMs = collectEveryMs;

  /** `limitBytes` 0: not watched. */
  constructor(limitBytes: number, io: Partial<ProcessMemoryIo> & Pick<ProcessMemoryIo, 'monotonicMs'>) {
    this.#limitBytes = limitBytes;
    this.#io = { ...system, ...io };
  }

  /** Of its limit; 1: all of it. As it was a tenth of a second ago at most. */
  get share(): number {
    if (this.#limitBytes === 0) return 0;
    const nowMs = this.#io.monotonicMs();
    if (nowMs >= this.#nextReadMs) this.#look(nowMs);
    return this.#share;
  }

  /** There is none left for so many bytes more. */
  lacks(bytes: number): boolean {
    if (this.#limitBytes === 0) return false;
    const more = bytes / this.#limitBytes;
    if (this.share + more <= 1) return false;
    if (this.#share > collectFromShare) this.#collect(this.#io.monotonicMs());
    return this.#share + more > 1;
  }

  #look(nowMs: number): void {
    this.#nextReadMs = nowMs + readEveryMs;
    this.#share = this.#io.read() / this.#limitBytes;
  }

  #collect(nowMs: number): void {
    if (nowMs < this.#nextCollectionMs) return;
    const before = this.#share;
    this.#io.collect();
    this.#look(nowMs);
    const isWorthwhile = before - this.#share > worthwhileShare;
    this.#collectEveryMs = isWorthwhile
      ? collectEveryMs
      : Math.min(2 * this.#collectEveryMs, longestCollectEveryMs);
    this.#nextCollectionMs = nowMs + this.#collectEveryMs;
  }
}
