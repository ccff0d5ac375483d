import { z } from 'zod';

/** Values as the API, reports and files show them. */

/** ISO 8601, UTC, microseconds. */
export const shownInstant = z.string().regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/);
/** Six decimals. */
export const usd = z.string().regex(/^\d+\.\d{6}$/);
export const shownCount = z.int().min(0);
