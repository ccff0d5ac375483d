import { z } from 'zod';
import { parseTimestampMicros } from '../core/timestamp.ts';

/** An instant as query parameters name it (SPEC 4.6) → microseconds since the epoch. */
export const instantText = z.string().transform((text, context) => {
  const micros = parseTimestampMicros(text);
  if (micros !== null) return micros;
  context.addIssue({ code: 'custom', message: 'must be an ISO 8601 timestamp with a time zone' });
  return z.NEVER;
});
