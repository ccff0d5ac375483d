import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { LogPage, LogQuery } from '../../adapters/postgres/request-logs-query.ts';
import type { Stats, StatsQuery } from '../../adapters/postgres/stats-query.ts';
import { InvalidRequestError } from '../../core/errors.ts';
import { statsGroups } from '../../core/stats-group.ts';
import { parseTimestampMicros } from '../../core/timestamp.ts';
import { parseOrThrow } from '../parse.ts';

const maxPage = 1000;
const defaultPage = 100;
const maxCursorLength = 1024;

const instant = z.string().transform((text, context) => {
  const micros = parseTimestampMicros(text);
  if (micros !== null) return micros;
  context.addIssue({ code: 'custom', message: 'must be an ISO 8601 timestamp with a time zone' });
  return z.NEVER;
});

/** Query of `GET /v1/logs` (SPEC 4.6). */
export const logsQuerySchema = z.object({
  since: instant.optional(),
  limit: z
    .string()
    .regex(/^[0-9]{1,9}$/, 'must be an integer')
    .transform(Number)
    .pipe(z.int().min(1).max(maxPage))
    // As the description shows it; on the wire every parameter is text.
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

/** Query of `GET /v1/stats`. */
export const statsQuerySchema = z.object({
  since: instant.optional(),
  until: instant.optional(),
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

export interface LogsDeps {
  readonly readLogs: (userId: string, query: LogQuery) => Promise<LogPage>;
  readonly readStats: (userId: string, query: StatsQuery) => Promise<Stats>;
}

/** `GET /v1/logs` and `GET /v1/stats`: the caller's own rows and their sums. */
export function logsRoutes(app: FastifyInstance, deps: LogsDeps): void {
  app.get('/v1/logs', async (request) => {
    const { since, limit, cursor } = parseOrThrow(logsQuerySchema, request.query);
    const query = { since: since ?? null, limit: limit ?? defaultPage, cursor: cursor ?? null };
    return deps.readLogs(request.account.userId, query);
  });
  app.get('/v1/stats', async (request) => {
    const { since, until, group_by: groupBy } = parseOrThrow(statsQuerySchema, request.query);
    if (since !== undefined && until !== undefined && until < since) {
      throw new InvalidRequestError('until must not lie before since.', 'until');
    }
    return deps.readStats(request.account.userId, {
      since: since ?? null,
      until: until ?? null,
      groupBy: groupBy ?? [],
    });
  });
}
