import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { YardstickReport } from '../yardstick.ts';

/** A machine that is slower than this by other work is too busy for any judgement of time: then the limits stay. */
const mostSlowness = 4;

export interface Yardstick {
  /** How many times as much CPU time the same work takes as at its best, since the last call; at least 1. */
  slowness(): Promise<number>;
}

export function yardstickOf(control: ChildProcess): Yardstick {
  let bestMs = Number.POSITIVE_INFINITY;
  let id = 0;
  return {
    slowness: async () => {
      id += 1;
      const answer = once(control, 'message') as Promise<[YardstickReport]>;
      control.send({ id });
      const [{ workCpuMs }] = await answer;
      if (workCpuMs === null || !(workCpuMs > 0)) return 1;
      bestMs = Math.min(bestMs, workCpuMs);
      return Math.min(mostSlowness, workCpuMs / bestMs);
    },
  };
}
