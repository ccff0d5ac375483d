import { z } from 'zod';
import { parseTimestampMicros } from './timestamp.ts';

/** Text that a request gives an instant in, read as microseconds since the epoch. */
export const instantText = (text: z.ZodString) =>
  text
    .transform((given, context) => {
      const micros = parseTimestampMicros(given);
      if (micros !== null) return micros;
      context.addIssue({ code: 'custom', message: 'must be an ISO 8601 timestamp with a time zone' });
      return z.NEVER;
    })
    .meta({ format: 'date-time', description: 'ISO 8601 with a time zone.' });
