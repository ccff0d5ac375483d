import { crowding } from './crowding.ts';

/** How long this process was held up by a machine that stood still, or by others on its cores; its own work is none. */

/** Shorter than this is what a timer is late on a quiet machine, and what a slice of another process costs. */
const stallFromMs = 50;
/** What stands still beside us may be held up thrice: on its way in, at work, on its way out. */
const stallFactor = 3;
/** Bounds hold for one replica on a machine of its own; a shared one with two cores gets three times as much. */
const slack = 3;

export interface HoldUps {
  /** The longest time for which nothing of this process ran, milliseconds; 0 when none was worth telling. */
  readonly longestMs: number;
  /** How much longer a period took than it should: 1 on a quiet machine. */
  readonly lateness: number;
  /** As `crowding` says. */
  readonly crowding: number;
}

/** What a bound of `boundMs` becomes on a machine that held us up so. */
export function allowedMs(boundMs: number, { longestMs, lateness, crowding }: HoldUps): number {
  return boundMs * slack * Math.max(1, lateness, crowding) + stallFactor * longestMs;
}

/** Longer than others keep a core to themselves, shorter than most limits that a test gives the gateway. */
const worthAnotherTryMs = 400;
const mostTries = 2;
/** Each try of a property draws cases of its own: what one of them refuted, another does not prove. */
const refuted = /^Property failed after/;

/**
 * vitest's `retry`: as often as the run allows (`--retry`) whatever the reason, and more often after a hold-up; a
 * property that a case has refuted, never.
 */
export function triesWhenHeldUp(
  ofRun: number | { readonly count?: number } | undefined,
  read: () => HoldUps,
): { count: number; condition: (error: { readonly message: string }) => boolean } {
  let triesLeft = typeof ofRun === 'number' ? ofRun : (ofRun?.count ?? 0);
  const count = triesLeft + mostTries;
  const condition = ({ message }: { readonly message: string }): boolean => {
    if (refuted.test(message)) return false;
    if (read().longestMs >= worthAnotherTryMs) return true;
    triesLeft -= 1;
    return triesLeft >= 0;
  };
  return { count, condition };
}

/** When, and how much CPU this process has had until then; both in milliseconds. */
export interface Moment {
  readonly atMs: number;
  readonly cpuMs: number;
}

/** Is to look every `periodMs`; tests give it any clock. */
export class HoldUpProbe {
  /** Often enough to tell a tenth of a second, seldom enough to cost nothing. */
  static readonly periodMs = 10;

  #last: Moment;
  #longestMs = 0;
  #totalMs = 0;
  #looks = 0;

  constructor(now: Moment) {
    this.#last = now;
  }

  lookedAt(now: Moment): void {
    const gapMs = this.#idleMs(now);
    this.#last = now;
    if (gapMs - HoldUpProbe.periodMs >= stallFromMs) {
      // Told once, and not again as lateness.
      this.#longestMs = Math.max(this.#longestMs, gapMs - HoldUpProbe.periodMs);
      return;
    }
    this.#totalMs += gapMs;
    this.#looks += 1;
  }

  /** Since the last `forget`, up to now: a stall that has ended just now counts too. */
  read(now: Moment, crowding: number): HoldUps {
    const lateMs = this.#idleMs(now) - HoldUpProbe.periodMs;
    return {
      longestMs: Math.max(this.#longestMs, lateMs >= stallFromMs ? lateMs : 0),
      lateness: this.#looks === 0 ? 1 : Math.max(1, this.#totalMs / (this.#looks * HoldUpProbe.periodMs)),
      crowding,
    };
  }

  forget(now: Moment): void {
    this.#last = now;
    this.#longestMs = 0;
    this.#totalMs = 0;
    this.#looks = 0;
  }

  /** Since the last look, without what was our own work: that has held up nobody but ourselves. */
  #idleMs({ atMs, cpuMs }: Moment): number {
    return atMs - this.#last.atMs - (cpuMs - this.#last.cpuMs);
  }
}

/** Kept, since tests fake the clock and the timers of their process. */
const clock = performance.now.bind(performance);
const startInterval = setInterval;

function moment(): Moment {
  const { user, system } = process.cpuUsage();
  return { atMs: clock(), cpuMs: (user + system) / 1_000 };
}

/** Of this process, from the loading of this file on. */
const probe = new HoldUpProbe(moment());
startInterval(() => probe.lookedAt(moment()), HoldUpProbe.periodMs).unref();

/** Since the test that is running began. */
export function holdUps(): HoldUps {
  return probe.read(moment(), crowding());
}

/** Forgets what held up the test before. */
export function forgetHoldUps(): void {
  probe.forget(moment());
}
