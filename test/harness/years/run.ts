import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { migrate } from '../../../src/adapters/postgres/migrate.ts';
import { createPool } from '../../../src/adapters/postgres/pool.ts';
import type { Years } from './fill.ts';
import { fillRows, prepareYears, sumUpAnew, userId } from './fill.ts';
import type { Probe } from './probes.ts';
import { probesOf, upkeepOf } from './probes.ts';

/** Fills a database with years of rows and asks it what users and operators ask, while rows are committed beside. */

const usualCalls = 200;
/** Rows of one statement that fills. */
const portion = 100_000;
/** How long commits are watched with nothing beside them. */
const aloneMs = 10_000;
/** Fills and measurements of maintenance take minutes; the pool of pages keeps the limits of a gateway. */
const patienceMs = 3_600_000;
const queryConnections = 4;

interface Times {
  readonly p50: number;
  readonly p99: number;
  readonly count: number;
  readonly failed: number;
}

export interface Measured {
  readonly name: string;
  readonly times: Times;
  /** Of the commits beside it. */
  readonly commits: Times;
}

export interface Sizes {
  readonly rows: number;
  readonly tableBytes: number;
  readonly indexBytes: number;
  readonly sums: number;
  readonly sumBytes: number;
}

export interface Stand {
  readonly sizes: Sizes;
  /** With nothing beside it. */
  readonly alone: Times;
  readonly measured: readonly Measured[];
}

function timesOf(times: readonly number[], failed: number): Times {
  const sorted = [...times].sort((one, other) => one - other);
  const at = (fraction: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? 0;
  return { p50: at(0.5), p99: at(0.99), count: sorted.length, failed };
}

async function commitsOf(child: ChildProcess): Promise<Times> {
  const answer = once(child, 'message');
  child.send('times');
  const [{ times, failed }] = (await answer) as [{ times: number[]; failed: number }];
  return timesOf(times, failed);
}

async function measure(child: ChildProcess, { name, run, calls = usualCalls }: Probe): Promise<Measured> {
  const times: number[] = [];
  let failed = 0;
  await commitsOf(child);
  for (let turn = 0; turn < calls; turn += 1) {
    const begin = performance.now();
    await run(turn).catch((error: unknown) => {
      failed += 1;
      if (failed === 1) console.log(`${name}: ${String(error)}`);
    });
    times.push(performance.now() - begin);
  }
  return { name, times: timesOf(times, failed), commits: await commitsOf(child) };
}

async function sizesOf(pool: pg.Pool): Promise<Sizes> {
  const { rows } = await pool.query<Record<keyof Sizes, string>>(
    `SELECT (SELECT count(*) FROM request_logs) AS rows, sum(pg_table_size(inhrelid)) AS "tableBytes",
       sum(pg_indexes_size(inhrelid)) AS "indexBytes", (SELECT count(*) FROM request_rollups) AS sums,
       pg_total_relation_size('request_rollups') AS "sumBytes"
     FROM pg_inherits WHERE inhparent = 'request_logs'::regclass`,
  );
  return Object.fromEntries(
    Object.entries(rows[0] ?? {}).map(([name, text]) => [name, Number(text)]),
  ) as never;
}

export interface YearsOptions {
  readonly databaseUrl: string;
  readonly weeks: number;
  readonly users: number;
  /** How many rows there are each time that is measured; rising. */
  readonly stands: readonly number[];
  /** Told of each at once: those that follow take long. */
  readonly onStand: (stand: Stand) => void;
}

export async function measureYears(options: YearsOptions): Promise<readonly Stand[]> {
  const years: Years = { ...options, nowMs: Date.now() };
  const long = createPool(options.databaseUrl, 2, { patienceMs });
  const pool = createPool(options.databaseUrl, queryConnections);
  await migrate(options.databaseUrl);
  await prepareYears(long, years);
  const stands: Stand[] = [];
  let from = 0;
  for (const to of options.stands) {
    const beginMs = Date.now();
    for (let at = from; at < to; at += portion)
      await fillRows(long, years, { from: at, to: Math.min(to, at + portion) }, { from, to });
    from = to;
    await sumUpAnew(long, years);
    await long.query('VACUUM (ANALYZE)');
    console.log(
      `${to} rows filled in, summed up and analyzed in ${Math.round((Date.now() - beginMs) / 1000)} s`,
    );
    const stand = await measureStand(options.databaseUrl, pool, long, years, stands.length);
    options.onStand(stand);
    stands.push(stand);
  }
  await Promise.all([pool.end(), long.end()]);
  return stands;
}

async function measureStand(
  databaseUrl: string,
  pool: pg.Pool,
  long: pg.Pool,
  years: Years,
  dropped: number,
): Promise<Stand> {
  const sizes = await sizesOf(long);
  const child = fork(join(import.meta.dirname, 'commit-child.ts'), [databaseUrl, userId(years.users)]);
  try {
    await delay(aloneMs / 5);
    await commitsOf(child);
    await delay(aloneMs);
    const alone = await commitsOf(child);
    const measured: Measured[] = [];
    for (const probe of [...(await probesOf(pool, long, years)), ...upkeepOf(long, years, dropped)])
      measured.push(await measure(child, probe));
    return { sizes, alone, measured };
  } finally {
    child.disconnect();
    await once(child, 'exit');
  }
}
