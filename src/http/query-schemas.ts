import { z } from 'zod';
import { statsGroups } from '../core/stats-group.ts';
import { parseTimestampMicros } from '../core/timestamp.ts';

/** What the query strings of the API hold. On the wire every parameter is text. */

const maxPage = 1000;
export const defaultPage = 100;
const maxCursorLength = 1024;

/** Microseconds since the epoch. */
const instantText = z.string().transform((text, context) => {
  const micros = parseTimestampMicros(text);
  if (micros !== null) return micros;
  context.addIssue({ code: 'custom', message: 'must be an ISO 8601 timestamp with a time zone' });
  return z.NEVER;
});

/** `GET /v1/logs` (SPEC 4.6). */
export const logsQuerySchema = z.object({
  since: instantText.optional(),
  limit: z
    .string()
    .regex(/^[0-9]{1,9}$/, 'must be an integer')
    .transform(Number)
    .pipe(z.int().min(1).max(maxPage))
    // As the description shows it.
    .meta({
      type: 'integer',
      minimum: 1,
      maximum: maxPage,
      pattern: undefined,
      description: `${defaultPage} by default.`,
    })
    .optional(),
  cursor: z.string().max(maxCursorLength, 'is malformed').optional(),
});
export type LogsQuery = z.output<typeof logsQuerySchema>;

/** `GET /v1/stats`. */
export const statsQuerySchema = z.object({
  since: instantText.optional(),
  until: instantText.optional(),
  group_by: z
    .string()
    .transform((text, context) => {
      const names = z.array(z.enum(statsGroups)).safeParse(text.split(','));
      if (names.success && new Set(names.data).size === names.data.length) return names.data;
      context.addIssue({
        code: 'custom',
        message: `must be a list without repeats of ${statsGroups.join(', ')}`,
      });
      return z.NEVER;
    })
    .optional(),
});
export type StatsQuery = z.output<typeof statsQuerySchema>;
