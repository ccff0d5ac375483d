/**
 * Latency classes of the hourly rollups. Stored counts refer to these bounds by position, so they never
 * change; another scale would need another column. Five steps a decade keep a percentile within about a
 * fifth of the truth before interpolation.
 */
export const latencyBoundsMs: readonly number[] = [
  1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 7000,
  10_000, 15_000, 20_000, 30_000, 50_000, 70_000, 100_000, 150_000, 200_000, 300_000, 500_000,
];

/** One class below each bound and one for all above the last. */
export const latencyBucketCount = latencyBoundsMs.length + 1;

/**
 * The latency in whole milliseconds that `fraction` (0 to 1) of the counted requests did not exceed,
 * interpolated inside its class. Null when nothing was counted. The open last class gives its lower bound.
 */
export function latencyPercentile(counts: readonly number[], fraction: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const rank = fraction * total;
  let below = 0;
  for (const [index, count] of counts.entries()) {
    if (count > 0 && below + count >= rank) {
      const lower = index === 0 ? 0 : (latencyBoundsMs[index - 1] ?? 0);
      const upper = latencyBoundsMs[index] ?? lower;
      return Math.round(lower + ((upper - lower) * (rank - below)) / count);
    }
    below += count;
  }
  return latencyBoundsMs.at(-1) ?? null;
}
