/** A Postgres that answers and writes nothing: the log is away until a row was really written, and says so once. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, aroundEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { encodeLogRow } from '../../../src/adapters/postgres/encode-log-rows.ts';
import { newRowsInto } from '../../../src/adapters/postgres/log-insert.ts';
import type { LogRecoveryOptions } from '../../../src/adapters/postgres/log-recovery.ts';
import { recoverInBackground } from '../../../src/adapters/postgres/log-recovery.ts';
import { createRequestLog } from '../../../src/adapters/postgres/request-log.ts';
import type { PostgresRequestLog } from '../../../src/adapters/postgres/request-log-contract.ts';
import { encodeSpoolLine } from '../../../src/adapters/spool/spool-line.ts';
import type { SettledRequest } from '../../../src/core/settled-request.ts';
import { useDatabase, useFolder, useGatewayPool, usePool } from '../../harness/servers/use-started.ts';
import { logRow, printerInto, rolledUp, storedRowIds } from './log-rows.ts';

vi.mock('node:timers/promises', async (original) => {
  const real = await original<typeof import('node:timers/promises')>();
  return { ...real, setTimeout: vi.fn(real.setTimeout) };
});

const database = useDatabase(aroundEach);
const pool = usePool(database, 2, aroundEach);
const logPool = useGatewayPool(database, 3, aroundEach);
const spool = useFolder(aroundEach);
/** What the log told, and what it would have let in while it did. */
let told: { readonly event: 'away' | 'back'; readonly accepting: boolean }[];
let printed: string[];
let log: PostgresRequestLog;

beforeEach(() => {
  told = [];
  printed = [];
});
afterEach(() => log.drain(0));

async function openLog(maxBytes: number): Promise<void> {
  const tell = (event: 'away' | 'back') => () => {
    told.push({ event, accepting: log.accepting('another user') });
  };
  log = await createRequestLog({
    pool: logPool,
    spool: { directory: spool.path, maxBytes },
    onBrokenSpool: (path) => expect.unreachable(path),
    whenFull: 'refuse',
    clock: { monotonicMs: () => performance.now() },
    printer: printerInto(printed),
    insert: newRowsInto(logPool, () => {}),
    onAway: tell('away'),
    onBack: tell('back'),
  });
}

/** Every row is refused with this state, and none rows are taken: as a disk without room for another page. */
async function refuseRows(state: string): Promise<void> {
  await pool.query(`
    CREATE FUNCTION refuse_row() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'no row of this' USING ERRCODE = '${state}'; END $$;
    CREATE TRIGGER refuse_row BEFORE INSERT ON request_logs FOR EACH ROW EXECUTE FUNCTION refuse_row()`);
}

const takeRows = () => pool.query('DROP TRIGGER refuse_row ON request_logs');
const lacks = (table: string) => pool.query(`ALTER TABLE ${table} RENAME TO elsewhere`);
const has = (table: string) => pool.query(`ALTER TABLE elsewhere RENAME TO ${table}`);

const troubles: [what: string, begin: () => Promise<unknown>, end: () => Promise<unknown>][] = [
  ['whose disk is full', () => refuseRows('53100'), takeRows],
  ['whose memory is', () => refuseRows('53200'), takeRows],
  ['that is a standby', () => refuseRows('25006'), takeRows],
  ['that lets us write no more', () => refuseRows('42501'), takeRows],
  ['without its table', () => lacks('request_logs'), () => has('request_logs')],
  [
    'without the table of what is to be summed',
    () => lacks('unsummed_requests'),
    () => has('unsummed_requests'),
  ],
  [
    'without a partition for the rows',
    () => pool.query('ALTER TABLE request_logs DETACH PARTITION request_logs_default'),
    () => pool.query('ALTER TABLE request_logs ATTACH PARTITION request_logs_default DEFAULT'),
  ],
];

/** Resolves when the log has looked so often without finding Postgres well. */
const untilLooks = (count: number) =>
  expect
    .poll(() => told.filter(({ event }) => event === 'away').length, { interval: 5 })
    .toBeGreaterThan(count);

const events = () => [...new Set(told.map(({ event }) => event))];
const ids = (rows: readonly SettledRequest[]) => rows.map(({ rowId }) => rowId).sort();
const printedIds = () => printed.map((line) => (JSON.parse(line) as { row: { row_id: string } }).row.row_id);

describe.each(troubles)('a Postgres %s', (_what, begin, end) => {
  test('lets nobody in while the spool is full, and has each row once when it is well', async () => {
    await openLog(20_000);
    await begin();
    const rows: SettledRequest[] = [];
    while (log.accepting('another user')) {
      rows.push(logRow());
      await log.record(rows.at(-1) as SettledRequest);
    }
    told = [];
    await untilLooks(4);
    expect(events()).toEqual(['away']);
    expect(told.filter(({ accepting }) => accepting)).toEqual([]);
    expect(log.stats()).toMatchObject({ away: true, dropped: 0 });
    told = [];
    await end();
    await expect.poll(() => log.stats()).toMatchObject({ away: false, spoolBytes: 0 });
    expect(told.filter(({ event }) => event === 'back')).toHaveLength(1);
    expect(log.accepting('another user')).toBe(true);
    expect(await storedRowIds(pool)).toEqual(ids(rows));
    expect(await rolledUp(pool)).toBe(rows.length);
  });

  test('is found out where no row waits, and back when one can be written, of which nothing stays', async () => {
    await openLog(1);
    await begin();
    const lost = logRow();
    await log.record(lost);
    await untilLooks(4);
    expect(events()).toEqual(['away']);
    expect(printedIds()).toEqual([lost.rowId]);
    await end();
    await expect.poll(() => log.stats().away).toBe(false);
    expect(await storedRowIds(pool)).toEqual([]);
    expect(await rolledUp(pool)).toBe(0);
  });
});

test('rows of a dead process that cannot be written keep the log away as its own do', async () => {
  const rows = [logRow(), logRow()];
  mkdirSync(`${spool.path}/slot-1`);
  const segment = rows.map((row) => encodeSpoolLine(encodeLogRow(row))).join('');
  writeFileSync(`${spool.path}/slot-1/0000000001.ndjson`, segment);
  await refuseRows('53100');
  await openLog(1_000_000);
  await untilLooks(4);
  expect(events()).toEqual(['away']);
  await takeRows();
  await expect.poll(() => storedRowIds(pool)).toEqual(ids(rows));
  expect(log.stats()).toMatchObject({ away: false, replayed: 2 });
});

test('torn lines and refused rows are counted and kept once, however often the replay begins anew', async () => {
  const good = Array.from({ length: 300 }, () => logRow());
  const lines = good.map((row) => encodeSpoolLine(encodeLogRow(row)));
  const refused = logRow({ latencyMs: 2 ** 40 });
  lines.splice(100, 0, 'torn in the first batch\n', encodeSpoolLine(encodeLogRow(refused)));
  lines.splice(280, 0, 'torn in the second batch\n');
  mkdirSync(`${spool.path}/slot-0`);
  writeFileSync(`${spool.path}/slot-0/0000000001.ndjson`, lines.join(''));
  // One row of the second batch cannot be written for now.
  await pool.query(`
    CREATE FUNCTION refuse_row() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$;
    CREATE TRIGGER refuse_row BEFORE INSERT ON request_logs FOR EACH ROW
      WHEN (NEW.request_id = '${good[290]?.requestId}') EXECUTE FUNCTION refuse_row()`);
  const aside = () => readFileSync(`${spool.path}/slot-0/bad.ndjson`, 'utf8').split('\n').slice(0, -1);
  await openLog(1_000_000);
  await untilLooks(4);
  expect(log.stats().bad).toBe(2);
  expect(aside()).toHaveLength(2);
  await takeRows();
  await expect.poll(() => log.stats()).toMatchObject({ bad: 3, spoolBytes: 0, away: false });
  expect(aside()).toHaveLength(3);
  expect(await storedRowIds(pool)).toEqual(ids(good));
});

describe('the pauses between two looks', () => {
  const pauses: number[] = [];
  let outcomes: ((onWritten: () => void) => void)[];

  /** A round for each of these outcomes of the replay; returns how long was waited after each. */
  async function pausesAfter(given: typeof outcomes): Promise<readonly number[]> {
    pauses.length = 0;
    outcomes = [...given];
    const end = new AbortController();
    let away = true;
    const pause = async (ms?: number): Promise<void> => {
      pauses.push(ms ?? 0);
      if (outcomes.length === 0) end.abort();
    };
    vi.mocked(sleep).mockImplementation(pause as typeof sleep);
    const options: LogRecoveryOptions = {
      pool: logPool,
      spool: { retry: async () => {} },
      replay: { run: async (_abandonedToo, _signal, onWritten) => outcomes.shift()?.(onWritten) },
      clock: { monotonicMs: () => 0 },
      signal: end.signal,
      isAway: () => away,
      onAway: () => {
        away = true;
      },
      onBack: () => {
        away = false;
      },
    };
    await recoverInBackground(options);
    const { setTimeout: real } =
      await vi.importActual<typeof import('node:timers/promises')>('node:timers/promises');
    vi.mocked(sleep).mockImplementation(real);
    return [...pauses];
  }

  const fails = (): void => {
    throw new Error('no room');
  };
  const succeeds = (onWritten: () => void): void => onWritten();
  const takesSome = (onWritten: () => void): void => {
    onWritten();
    fails();
  };

  beforeEach(() => openLog(1_000_000));

  test('grow while nothing can be written, and begin anew after a round that ends well', async () => {
    expect(await pausesAfter([fails, fails, fails, fails, fails, fails])).toEqual([
      100, 200, 400, 800, 1000, 1000,
    ]);
    expect(await pausesAfter([fails, fails, succeeds, succeeds, fails, fails])).toEqual([
      100, 200, 250, 250, 100, 200,
    ]);
  });

  test('grow on where Postgres takes some rows and then no more', async () => {
    expect(await pausesAfter([takesSome, takesSome, takesSome, takesSome])).toEqual([100, 200, 400, 800]);
    expect(await pausesAfter([fails, fails, succeeds, fails])).toEqual([100, 200, 250, 400]);
  });
});

test.each(['22P05', '23514', '54000'])(
  'a row that is refused with %s is set aside, and holds no other up',
  async (state) => {
    await openLog(20_000);
    const poison = logRow();
    await pool.query(`
    CREATE FUNCTION refuse_row() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN
        IF NEW.row_id = '${poison.rowId}' THEN RAISE EXCEPTION 'not this one' USING ERRCODE = '${state}'; END IF;
        RETURN NEW;
      END $$;
    CREATE TRIGGER refuse_row BEFORE INSERT ON request_logs FOR EACH ROW EXECUTE FUNCTION refuse_row()`);
    const others = [logRow(), logRow()];
    await Promise.all([...others, poison].map((row) => log.record(row)));
    await expect.poll(() => log.stats()).toMatchObject({ bad: 1, spoolBytes: 0, away: false });
    expect(events()).toEqual([]);
    expect(await storedRowIds(pool)).toEqual(ids(others));
  },
);
