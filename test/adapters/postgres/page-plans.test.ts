import type pg from 'pg';
import { beforeAll, expect, test } from 'vitest';
import { readLogRow } from '../../../src/adapters/postgres/read-log-row.ts';
import { readLogRows } from '../../../src/adapters/postgres/read-log-rows.ts';
import { readSpent } from '../../../src/adapters/postgres/read-spent.ts';
import { readSums } from '../../../src/adapters/postgres/read-sums.ts';
import { periodsAt } from '../../../src/core/limits/budget.ts';
import { useDatabase, usePool } from '../../harness/servers/use-started.ts';
import { fillRows, prepareYears, sumUpAnew, userId } from '../../harness/years/fill.ts';

/** How Postgres looks for what users ask: by an index in each week, and in no more weeks than it must. */

const database = useDatabase();
const pool = usePool(database, 2);
const years = { weeks: 30, users: 50, nowMs: Date.now() };
const all = { from: 0, to: 30_000 };
const dayMicros = 86_400_000_000n;
const nowMicros = BigInt(years.nowMs) * 1000n;

beforeAll(async () => {
  await prepareYears(pool, years);
  await fillRows(pool, years, all, all);
  await sumUpAnew(pool, years);
  await pool.query('ANALYZE');
  full = new Set((await pool.query<{ name: string }>(fullSql)).rows.map(({ name }) => name));
  expect(full.size).toBeGreaterThanOrEqual(years.weeks - 1);
});

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly Plan[];
}

interface Scan {
  readonly type: string;
  readonly table: string;
}

function scansOf(plan: Plan): Scan[] {
  const table = plan['Relation Name'];
  const own = table === undefined ? [] : [{ type: plan['Node Type'], table }];
  return [...own, ...(plan.Plans ?? []).flatMap(scansOf)];
}

/** What is read for each statement of `work`, in a transaction or not, as planned with its values. */
async function scans(work: (watched: pg.Pool) => Promise<unknown>): Promise<Scan[][]> {
  const found: Scan[][] = [];
  const watched =
    (db: Pick<pg.ClientBase, 'query'>) =>
    async (text: string, values: unknown[] = []) => {
      if (/^\s*(SELECT|WITH)\b/.test(text)) {
        const { rows } = await db.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
          `EXPLAIN (FORMAT JSON) ${text}`,
          values,
        );
        found.push(rows.flatMap((row) => scansOf(row['QUERY PLAN'][0].Plan)));
      }
      return await db.query(text, values);
    };
  const connect = async () => {
    const client = await pool.connect();
    return Object.assign(Object.create(client) as pg.PoolClient, { query: watched(client) });
  };
  await work({ query: watched(pool), connect } as unknown as pg.Pool);
  return found;
}

/** Weeks whose rows are many: of the empty ones at both ends any way to read them will do. */
let full = new Set<string>();
const fullSql = 'SELECT tableoid::regclass::text AS name FROM request_logs GROUP BY 1 HAVING count(*) > 500';

const isFull = ({ table }: Scan): boolean => full.has(table);

const most = userId(1);
const page = { sinceMicros: null, after: null, requestId: null, limit: 100 } as const;
const back = { createdAtMicros: nowMicros - 100n * dayMicros, id: 0n };

/** The number: of how many weeks at most. */
test.each<[string, (watched: pg.Pool) => Promise<unknown>, number]>([
  ['the first page of one who calls often', (db) => readLogRows(db, most, page), 3],
  ['a page far back', (db) => readLogRows(db, most, { ...page, after: back }), 3],
  [
    'the rows since a day ago',
    (db) => readLogRows(db, most, { ...page, limit: 1000, sinceMicros: nowMicros - dayMicros }),
    2,
  ],
])('%s is read by the index of its weeks, one statement', async (_, work, weeks) => {
  const statements = await scans(work);
  expect(statements).toHaveLength(1);
  const [tables = []] = statements;
  expect(tables.filter((scan) => isFull(scan) && scan.type === 'Seq Scan')).toEqual([]);
  expect(tables.filter(isFull).length).toBeLessThanOrEqual(weeks);
});

test.each<[string, (watched: pg.Pool) => Promise<unknown>]>([
  ['a page of one who calls seldom', (db) => readLogRows(db, userId(50), { ...page, limit: 1000 })],
  ['a request id', (db) => readLogRows(db, most, { ...page, requestId: 'no such' })],
  ['one row', (db) => readLogRow(db, most, 20_000n)],
])('%s is looked for by an index in every week', async (_, work) => {
  for (const statement of await scans(work))
    expect(statement.filter((scan) => isFull(scan) && scan.type === 'Seq Scan')).toEqual([]);
});

test.each<[string, (watched: pg.Pool) => Promise<unknown>]>([
  [
    'statistics of a month',
    (db) => readSums(db, most, { since: nowMicros - 30n * dayMicros, until: null, groupBy: ['day'] }),
  ],
  ['what a user spent', (db) => readSpent(db, [most], periodsAt(years.nowMs))],
])('%s reads sums by their key, and no rows', async (_, work) => {
  const tables = (await scans(work)).flat();
  expect(tables.filter(({ table }) => table.startsWith('request_logs'))).toEqual([]);
  expect(tables.filter(({ table, type }) => table === 'request_rollups' && type === 'Seq Scan')).toEqual([]);
});
