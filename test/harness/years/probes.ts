import type pg from 'pg';
import { maintainPartitions } from '../../../src/adapters/postgres/partitions.ts';
import { readLogRow } from '../../../src/adapters/postgres/read-log-row.ts';
import { readLogRows } from '../../../src/adapters/postgres/read-log-rows.ts';
import { readSpend } from '../../../src/adapters/postgres/read-spend.ts';
import { readSpent } from '../../../src/adapters/postgres/read-spent.ts';
import { readSums } from '../../../src/adapters/postgres/read-sums.ts';
import { periodsAt } from '../../../src/core/limits/budget.ts';
import type { Years } from './fill.ts';
import { userId, weekMs } from './fill.ts';

/** What is asked of years of rows, by the functions that the gateway itself calls. */

export interface Probe {
  readonly name: string;
  /** `turn` counts up, so that each call asks for something else. */
  run(turn: number): Promise<unknown>;
  /** Less often than the others: it changes something, or takes long. */
  readonly calls?: number;
}

const dayMs = 86_400_000;
const dayMicros = BigInt(dayMs) * 1000n;

export async function probesOf(pool: pg.Pool, long: pg.Pool, years: Years): Promise<readonly Probe[]> {
  const nowMicros = BigInt(years.nowMs) * 1000n;
  const ago = (days: number) => nowMicros - BigInt(days) * dayMicros;
  const most = userId(1);
  /** Every one of them in turn, those with few rows as often as those with many. */
  const any = (turn: number) => userId(1 + ((turn * 37) % years.users));
  const page = { sinceMicros: null, after: null, requestId: null, limit: 100 } as const;
  const place = (turn: number) => ({
    createdAtMicros: ago(30 + ((turn * 13) % (years.weeks * 7 - 60))),
    id: 0n,
  });
  const { rows } = await long.query<{ id: string; request_id: string }>(
    `SELECT id, request_id FROM request_logs WHERE user_id = $1 AND created_at < now() - interval '100 days'
     ORDER BY created_at DESC LIMIT 200`,
    [most],
  );
  const known = (turn: number) => rows[turn % rows.length] as (typeof rows)[number];
  const sums = { until: null, groupBy: ['day', 'provider'] } as const;
  return [
    { name: 'first page, the largest user', run: () => readLogRows(pool, most, page) },
    { name: 'first page, any user', run: (turn) => readLogRows(pool, any(turn), page) },
    { name: 'page of 1,000, the largest user', run: () => readLogRows(pool, most, { ...page, limit: 1000 }) },
    {
      name: 'page by a cursor far back, the largest user',
      run: (turn) => readLogRows(pool, most, { ...page, after: place(turn) }),
    },
    {
      name: 'page by a cursor far back, any user',
      run: (turn) => readLogRows(pool, any(turn), { ...page, after: place(turn) }),
    },
    {
      name: '`since` a week ago',
      run: (turn) => readLogRows(pool, any(turn), { ...page, sinceMicros: ago(7) }),
    },
    {
      name: 'by request id',
      run: (turn) => readLogRows(pool, most, { ...page, requestId: known(turn).request_id }),
    },
    { name: 'one row explained, by id', run: (turn) => readLogRow(pool, most, BigInt(known(turn).id)) },
    { name: 'statistics of 30 days', run: () => readSums(pool, most, { since: ago(30), ...sums }) },
    { name: 'statistics of all time', run: () => readSums(pool, most, { since: null, ...sums }), calls: 20 },
    {
      name: 'budgets of 50 users',
      run: () =>
        readSpent(
          pool,
          Array.from({ length: 50 }, (_, index) => userId(index + 1)),
          periodsAt(years.nowMs),
        ),
    },
    {
      name: 'spend of all users, 30 days',
      run: () => readSpend(long, { fromMicros: ago(30), toMicros: nowMicros }),
      calls: 10,
    },
    {
      name: 'spend of all users, a year',
      run: () => readSpend(long, { fromMicros: ago(365), toMicros: nowMicros }),
      calls: 3,
    },
  ];
}

/** What goes on by itself; each changes something, and is done once. `drops` weeks are out of date by then. */
export function upkeepOf(long: pg.Pool, years: Years, dropped: number): readonly Probe[] {
  const keepDays = (years.weeks - dropped - 1) * 7;
  return [
    {
      name: 'a partition made ahead',
      run: () =>
        maintainPartitions(long, { retentionDays: 36_500, nowMs: years.nowMs + (1 + dropped) * weekMs }),
      calls: 1,
    },
    {
      name: 'retention drops a week',
      run: () => maintainPartitions(long, { retentionDays: keepDays, nowMs: years.nowMs }),
      calls: 1,
    },
    { name: 'vacuum of all rows', run: () => long.query('VACUUM request_logs'), calls: 1 },
    {
      name: 'vacuum and analyze of the sums',
      run: () => long.query('VACUUM ANALYZE request_rollups'),
      calls: 1,
    },
  ];
}
