import { availableParallelism, loadavg } from 'node:os';

/** How long this process was held up: by a machine that stood still, by others on its cores, by its own work. */

/** Shorter than this is what a timer is late on a quiet machine, and what a slice of another process costs. */
const stallFromMs = 50;
/** What stands still beside us may be held up thrice: on its way in, at work, on its way out. */
const stallFactor = 3;
/** Bounds hold for one replica on a machine of its own; a shared one with two cores gets three times as much. */
const slack = 3;

/** So many processes want a core each in a run of our own; what is beyond that is others' work. */
const ownPerCore = 2;

export interface HoldUps {
  /** The longest time for which nothing of this process ran, milliseconds; 0 when none was worth telling. */
  readonly longestMs: number;
  /** How much longer a period took than it should: 1 on a quiet machine. */
  readonly lateness: number;
  /** How much longer work takes for want of a core: 1 where there are enough, 6 where twelve processes want each. */
  readonly crowding: number;
}

/** What a bound of `boundMs` becomes on a machine that held us up so. */
export function allowedMs(boundMs: number, { longestMs, lateness, crowding }: HoldUps): number {
  return boundMs * slack * Math.max(1, lateness, crowding) + stallFactor * longestMs;
}

/** Longer than others keep a core to themselves, shorter than most limits that a test gives the gateway. */
const worthAnotherTryMs = 400;
/** With a sixth of a core, stores answer later than the gateway waits for them. */
const crowdingWorthAnotherTry = 3;
const mostTries = 2;

/** vitest's `retry`: as often as the run allows (`--retry`) whatever the reason, and more often after a hold-up. */
export function triesWhenHeldUp(
  ofRun: number | { readonly count?: number } | undefined,
  read: () => HoldUps,
): { count: number; condition: () => boolean } {
  let triesLeft = typeof ofRun === 'number' ? ofRun : (ofRun?.count ?? 0);
  const count = triesLeft + mostTries;
  const condition = (): boolean => {
    const { longestMs, crowding } = read();
    if (longestMs >= worthAnotherTryMs || crowding >= crowdingWorthAnotherTry) return true;
    triesLeft -= 1;
    return triesLeft >= 0;
  };
  return { count, condition };
}

/** Is to look every `periodMs`; tests give it any clock. */
export class HoldUpProbe {
  /** Often enough to tell a tenth of a second, seldom enough to cost nothing. */
  static readonly periodMs = 10;

  #lastMs: number;
  #longestMs = 0;
  #totalMs = 0;
  #looks = 0;

  constructor(nowMs: number) {
    this.#lastMs = nowMs;
  }

  lookedAt(nowMs: number): void {
    const gapMs = nowMs - this.#lastMs;
    this.#lastMs = nowMs;
    if (gapMs - HoldUpProbe.periodMs >= stallFromMs) {
      // Told once, and not again as lateness.
      this.#longestMs = Math.max(this.#longestMs, gapMs - HoldUpProbe.periodMs);
      return;
    }
    this.#totalMs += gapMs;
    this.#looks += 1;
  }

  /** Since the last `forget`, up to now: what holds us up until this very turn counts too. */
  read(nowMs: number, crowding: number): HoldUps {
    const lateMs = nowMs - this.#lastMs - HoldUpProbe.periodMs;
    return {
      longestMs: Math.max(this.#longestMs, lateMs >= stallFromMs ? lateMs : 0),
      lateness: this.#looks === 0 ? 1 : this.#totalMs / (this.#looks * HoldUpProbe.periodMs),
      crowding,
    };
  }

  forget(): void {
    this.#longestMs = 0;
    this.#totalMs = 0;
    this.#looks = 0;
  }
}

/** Kept, since tests fake the clock and the timers of their process. */
const clock = performance.now.bind(performance);
const startInterval = setInterval;

/** Of this process, from the loading of this file on. */
const probe = new HoldUpProbe(clock());
startInterval(() => probe.lookedAt(clock()), HoldUpProbe.periodMs).unref();

export function holdUps(): HoldUps {
  return probe.read(clock(), crowding());
}

/** Of the last minute, by the kernel's own count; 1 where it keeps none. */
export function crowding(): number {
  return Math.max(1, (loadavg()[0] ?? 0) / availableParallelism() / ownPerCore);
}

/** Forgets what held up the test before. */
export function forgetHoldUps(): void {
  probe.forget();
}
