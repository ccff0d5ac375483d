import { z } from 'zod';
import { instantText } from '../../core/instant-text.ts';
import { decodeLogCursor, longestCursor } from '../../core/log/log-cursor.ts';
import { acceptableRequestId } from '../../core/request/request-id.ts';
import { statsGroups } from '../../core/stats-group.ts';

/** What the query strings of the API hold. On the wire every parameter is text. */

const maxPage = 1000;
export const defaultPage = 100;

/** A parameter that is there twice is a list. */
export const parameter = z.string({
  error: ({ input }) => (input === undefined ? 'is missing' : 'must be sent once'),
});

export const queryInstant = instantText(parameter);

const pageText = parameter
  .regex(/^-?[0-9]+$/, { error: 'must be an integer', abort: true })
  .transform(Number)
  .refine((limit) => limit >= 1 && limit <= maxPage, `must be between 1 and ${maxPage}`);

/** Rows of one page. */
export const pageLimit = pageText
  // As the description shows it.
  .meta({
    type: 'integer',
    minimum: 1,
    maximum: maxPage,
    pattern: undefined,
    description: `1 to ${maxPage}; ${defaultPage} by default.`,
  });

const cursorText = parameter
  .transform((text, context) => {
    const cursor = decodeLogCursor(text);
    if (cursor !== null) return cursor;
    context.addIssue({ code: 'custom', message: 'must be the next_cursor of another page' });
    return z.NEVER;
  })
  .meta({
    maxLength: longestCursor,
    pattern: '^[A-Za-z0-9_-]+$',
    description: 'The next_cursor of the page before; opaque.',
  });

/** `GET /v1/logs` (SPEC 4.6). */
export const logsQuerySchema = z.object({
  since: queryInstant.optional(),
  limit: pageLimit.optional(),
  cursor: cursorText.optional(),
  request_id: parameter
    .regex(acceptableRequestId, 'must be an X-Request-ID as it was answered')
    .meta({ description: 'Only rows of this X-Request-ID, which clients may repeat.' })
    .optional(),
});
export type LogsQuery = z.output<typeof logsQuerySchema>;

/** `GET /v1/stats`. */
export const statsQuerySchema = z.object({
  since: queryInstant.optional(),
  until: queryInstant.optional(),
  group_by: parameter
    .transform((text, context) => {
      // One more than there are is a repeat, or none of them: of 16 KB of commas the rest is not looked at.
      const names = z.array(z.enum(statsGroups)).safeParse(text.split(',', statsGroups.length + 1));
      if (names.success && new Set(names.data).size === names.data.length) return names.data;
      context.addIssue({
        code: 'custom',
        message: `must be a list without repeats of ${statsGroups.join(', ')}`,
      });
      return z.NEVER;
    })
    // Written with commas.
    .meta({ type: 'array', items: { type: 'string', enum: statsGroups }, minItems: 1, uniqueItems: true })
    .optional(),
});
export type StatsQuery = z.output<typeof statsQuerySchema>;
