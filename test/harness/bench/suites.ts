import type { Pace } from './vendor.ts';
import { EVENTS_PER_STREAM } from './workload.ts';

/** What targets are visited with. */

export const CONNECTIONS = 32;
export const STREAMS = 50;
const PACE_MS = 10;

export interface SuitePlan {
  readonly stream: boolean;
  readonly connections: number;
  readonly ms: number;
  readonly slices: number;
  /** Between an answer and the next request. */
  readonly pauseMs?: number;
  readonly pace: Pace;
  /** What the CPU time of a request is divided by. */
  readonly units: number;
}

export const atOnce: Pace = { ms: 0 };

/** What one slice does with a target, and for how long; how many slices each target has. */
export const suites = {
  json: { stream: false, connections: CONNECTIONS, ms: 250, slices: 32, pace: atOnce, units: 1 },
  burst: { stream: true, connections: STREAMS, ms: 250, slices: 32, pace: atOnce, units: EVENTS_PER_STREAM },
  // Each connection has two streams: the second begins in time.
  paced: {
    stream: true,
    connections: STREAMS,
    ms: 1_300,
    slices: 15,
    pace: { ms: PACE_MS },
    units: EVENTS_PER_STREAM,
  },
  latency: { stream: false, connections: 1, ms: 500, slices: 8, pace: atOnce, units: 1 },
  // One stream behind the other, once the row of the one before is stored and Postgres has come to rest.
  first: {
    stream: true,
    connections: 1,
    ms: 1_000,
    slices: 16,
    pauseMs: 3,
    pace: { ms: 1, restTogether: true },
    units: EVENTS_PER_STREAM,
  },
} as const satisfies Readonly<Record<string, SuitePlan>>;

export type Suite = keyof typeof suites;
