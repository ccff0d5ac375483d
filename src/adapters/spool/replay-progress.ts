import type { Disk } from './disk.ts';
import type { Segment, SpoolBatch } from './spool-segment.ts';
import { readSegment } from './spool-segment.ts';

/**
 * How much of each segment was taken, in batches: a replay that begins anew, of this spool or of one that is opened
 * again, goes on behind it. Else each line that is set aside would be so with every attempt.
 *
 * A segment is known by its path and its length. It is never written to again, but when all are gone their numbers
 * begin anew.
 */
export class ReplayProgress {
  readonly #taken = new Map<string, number>();

  /** In order. Rejects with what `take` rejects with, after which its batch is not taken, or when it cannot be read. */
  async handOut(segment: Segment, take: (batch: SpoolBatch) => Promise<void>, disk: Disk): Promise<void> {
    let taken = this.#of(segment);
    for await (const batch of this.untaken(segment, disk)) {
      await take(batch);
      taken += 1;
      this.#taken.set(keyOf(segment), taken);
    }
  }

  /** The batches of a segment that were not taken yet, in order. Rejects when it cannot be read. */
  async *untaken(segment: Segment, disk: Disk): AsyncGenerator<SpoolBatch> {
    let passed = this.#of(segment);
    for await (const batch of readSegment(segment.path, disk)) {
      if (passed > 0) passed -= 1;
      else yield batch;
    }
  }

  /** For a segment that is gone. */
  forget(segment: Segment): void {
    this.#taken.delete(keyOf(segment));
  }

  #of(segment: Segment): number {
    return this.#taken.get(keyOf(segment)) ?? 0;
  }
}

const keyOf = ({ path, bytes }: Segment): string => `${bytes} ${path}`;
