/** Error bodies beyond this are cut: they are read for their message, or passed on up to this size. */
export const maxErrorBodyBytes = 64 * 1024;

/** After the end marker the vendor gets this long to close its body, so that the socket can be reused. */
export const lingerMs = 1000;

/** Silence of an open stream that its trace shows: far above the pauses between the tokens of any model. */
export const stallMs = 5_000;

/**
 * A client that reads nothing for this long is let go, with its upstream: a phone between two networks is back sooner,
 * and what waits for it is bounded.
 */
export const clientStallMs = 60_000;

/** A client that leaves behind the finish chunk has its whole answer: its usage is read for this long at most. */
export const usageReadMs = 2_000;
