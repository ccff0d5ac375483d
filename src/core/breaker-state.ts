/**
 * The states of every circuit breaker here, spelled as metric labels are. `closed`: calls go. `open`: after too many
 * failures in a row none is to go for a while. `half_open`: one call goes as a probe, on whose end all others wait.
 */
export const breakerStates = ['closed', 'half_open', 'open'] as const;
export type BreakerState = (typeof breakerStates)[number];
