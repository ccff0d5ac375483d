import { z } from 'zod';

/** One attempt, as errors and explained log rows show it. */
export const attemptFields = {
  provider: z.string(),
  model: z.string(),
  status: z.int().nullable(),
  reason: z.string(),
  latency_ms: z.int(),
  dropped: z.array(z.string()).exactOptional(),
};
