import type { Counted, Counts } from './limit-table.ts';
import { countedLimits } from './limit-table.ts';
import type { MinuteCounts } from './minute.ts';
import { minuteMs, streamLeaseMs } from './minute.ts';
import type { SharedAnswer, UserNews } from './shared-counts.ts';

const none = Object.fromEntries(countedLimits.map((limit) => [limit, 0])) as Counts;

/** By a loop: each limited request adds a few of them. */
function sumOf(one: Counts, other: Counts): Counts {
  const sum: Record<Counted, number> = { ...none };
  for (const limit of countedLimits) sum[limit] = one[limit] + other[limit];
  return sum;
}

/** News with the end of the window that they are of. */
interface DatedNews extends UserNews {
  readonly endsAtMs: number;
}

/**
 * What this replica knows of one user's minute: what all replicas counted, as the store last said, and what was counted
 * here since. So it decides alone, from where all stood, when the store does not answer. Times are monotonic ms.
 */
export class UserMinute {
  readonly userId: string;
  /** Admitted here and not over: it is not forgotten until there are none. */
  underWay = 0;
  /** Streams under way here. */
  streams = 0;
  /** Whether its streams are limited, so that the store has to know of them. */
  sharesStreams = false;
  /** It is in the list of those that the store is told of next. */
  isListed = false;
  #endsAtMs = 0;
  #counts = none;
  #untold = none;
  #otherStreams = 0;
  #otherStreamsUntilMs = 0;

  constructor(userId: string) {
    this.userId = userId;
  }

  /** Nothing of it is needed any more. */
  isIdle(nowMs: number): boolean {
    return this.underWay === 0 && nowMs >= this.#endsAtMs;
  }

  get hasNews(): boolean {
    return countedLimits.some((limit) => this.#untold[limit] > 0);
  }

  /** `streams`: those of others, and here those beside the one that asks. */
  counts(nowMs: number, asksForStream: boolean): MinuteCounts {
    this.#roll(nowMs);
    const others = nowMs < this.#otherStreamsUntilMs ? this.#otherStreams : 0;
    // The sum of two floats is a hair beyond a minute now and then, which would be a second more in a header.
    const leftMs = Math.round(this.#endsAtMs - nowMs);
    const streams = this.streams + others - Number(asksForStream);
    return { ...this.#counts, streams, leftMs };
  }

  /** One more was admitted by this replica alone; `isTold`: the store may have counted it all the same. */
  admitAlone(nowMs: number, isTold: boolean): void {
    this.#roll(nowMs);
    this.#add({ requests: 1, tokens: 0 }, !isTold);
  }

  spend(tokens: number, nowMs: number): void {
    this.#roll(nowMs);
    this.#add({ requests: 0, tokens }, true);
  }

  #add(counts: Counts, isNews: boolean): void {
    this.#counts = sumOf(this.#counts, counts);
    if (isNews) this.#untold = sumOf(this.#untold, counts);
  }

  /** Takes over what all replicas counted. What was counted here meanwhile comes on top. */
  hear(answer: SharedAnswer, isStream: boolean, nowMs: number): void {
    this.#endsAtMs = nowMs + answer.leftMs;
    this.#counts = sumOf(answer, this.#untold);
    if (!isStream) return;
    this.#otherStreams = answer.otherStreams;
    this.#otherStreamsUntilMs = nowMs + streamLeaseMs;
  }

  /** What the store is to be told; it counts as told until `untold` takes it back. */
  tell(streams: number | null, nowMs: number): DatedNews {
    this.#roll(nowMs);
    const news = { ...this.#untold, userId: this.userId, streams, endsAtMs: this.#endsAtMs };
    this.#untold = none;
    return news;
  }

  /** News of a window that is over meanwhile are dropped: the next one would have too many. */
  untold(news: DatedNews, nowMs: number): void {
    if (nowMs < news.endsAtMs) this.#untold = sumOf(this.#untold, news);
  }

  /** A window begins with the first call after the last one: nothing of that one is told any more. */
  #roll(nowMs: number): void {
    if (nowMs < this.#endsAtMs) return;
    this.#endsAtMs = nowMs + minuteMs;
    this.#counts = none;
    this.#untold = none;
  }
}
