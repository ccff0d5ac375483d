/** 1, 2, 4 … as `toPrecision` writes them, so that a boundary reads the same everywhere. */
const geometric = (first: number, factor: number, count: number): readonly number[] =>
  Array.from({ length: count }, (_, step) => Number((first * factor ** step).toPrecision(6)));

/**
 * Seconds. The boundaries of the OpenTelemetry GenAI convention (0.01 doubling to 81.92) with the
 * square-root-of-two steps between them, which brings the error of a p99 from 26 % down to 7 %, and three
 * more above, since a request may last 300 s.
 */
export const durationBuckets = geometric(0.01, Math.SQRT2, 31);

/** Seconds of our own work: far below what a model takes. 25 ms, the limit of the alert, is a boundary. */
export const overheadBuckets: readonly number[] = [
  0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
];

/** Seconds of one operation of a store on the same network. */
export const operationBuckets: readonly number[] = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05];

/** Seconds of one statement in Postgres, up to the limit at which it is given up. */
export const queryBuckets: readonly number[] = [
  0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1,
];

/** Tokens: the boundaries of the GenAI convention. */
export const tokenBuckets = geometric(1, 4, 14);

/** Tokens per second of one stream. */
export const tokenRateBuckets = geometric(5, 2, 7);

/** Bytes of a stored answer. */
export const byteBuckets = geometric(256, 4, 9);
