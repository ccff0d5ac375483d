import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { RowPrinter } from '../../../src/adapters/postgres/request-log-contract.ts';
import { noUsage } from '../../../src/core/answer/usage.ts';
import type { SettledRequest } from '../../../src/core/settled-request.ts';
import { settledRequest } from '../../../src/core/settled-request.ts';
import { callOf } from '../../chat/story.ts';

/** 2026-11-20T10:00:00Z, in microseconds. */
export const tenOClockMicros = 1_795_168_800_000_000;

const nothingTried = { last: null, served: null, records: [], skipped: [], tries: 1 };

let made = 0;

/** A successful row, a microsecond after the one made before. */
export function logRow(change: Partial<SettledRequest> = {}): SettledRequest {
  made += 1;
  const usage = { ...noUsage, basis: 'complete', inputTokens: 11, outputTokens: 7 } as const;
  const settled = settledRequest(callOf(), nothingTried, {
    rowId: randomUUID(),
    createdAtMicros: tenOClockMicros + made,
    end: { status: 'success' },
    cache: 'bypass',
    facts: { latencyMs: 120, usage, costMicroUsd: 1250n },
  });
  return {
    ...settled,
    userId: randomUUID(),
    requestId: `request-${made}`,
    target: { provider: 'openai', model: 'gpt-test' },
    tablesVersion: '0123456789abcdef',
    ...change,
  };
}

/** A stdout that takes everything at once, into `lines`. */
export function printerInto(lines: string[] = []): RowPrinter {
  return {
    print: (line, onLeft) => {
      lines.push(line);
      onLeft();
    },
    untilLeft: async () => true,
  };
}

/** Row ids in the table, each as often as it occurs. */
export async function storedRowIds(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query<{ row_id: string }>('SELECT row_id FROM request_logs ORDER BY row_id');
  return rows.map((row) => row.row_id);
}

/** Requests counted by the rollups, and those that wait to be. */
export async function rolledUp(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ requests: string }>(
    `SELECT coalesce(sum(requests), 0) + (SELECT count(*) FROM unsummed_requests) AS requests FROM request_rollups`,
  );
  return Number(rows[0]?.requests);
}
