import { z } from 'zod';

/** ISO 8601, UTC, microseconds. */
export const instant = z.string().regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/);
/** Six decimals. */
export const usd = z.string().regex(/^\d+\.\d{6}$/);
export const count = z.int().min(0);

/** One attempt, as errors and explained log rows show it. */
export const attemptFields = {
  provider: z.string(),
  model: z.string(),
  status: z.int().nullable(),
  reason: z.string(),
  latency_ms: z.int(),
  dropped: z.array(z.string()).exactOptional(),
};
