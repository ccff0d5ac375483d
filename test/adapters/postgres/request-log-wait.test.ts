/** How long a row waits for its commit, whatever the writers do: time is faked, commits are held by the test. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, aroundEach, beforeEach, expect, test, vi } from 'vitest';
import type { InsertNewRows } from '../../../src/adapters/postgres/log-insert.ts';
import { createRequestLog } from '../../../src/adapters/postgres/request-log.ts';
import type { PostgresRequestLog } from '../../../src/adapters/postgres/request-log-contract.ts';
import { Random } from '../../harness/measure/random.ts';
import { useDatabase, useFolder, usePool } from '../../harness/servers/use-started.ts';
import { logRow, printerInto } from './log-rows.ts';

const waitMs = 50;
/** Beyond this a commit counts as stalled, and nothing waits any more. */
const longestHoldMs = 200;

const database = useDatabase(aroundEach);
const pool = usePool(database, 2, aroundEach);
const spool = useFolder(aroundEach);
let log: PostgresRequestLog;
/** Commits under way, oldest first. */
let held: { readonly sinceMs: number; readonly release: () => void }[];
/** Rows without a place, by the order of their arrival. */
let waiting: Set<{ readonly sinceMs: number; readonly recorded: Promise<void> }>;

const insertHeld: InsertNewRows = () =>
  new Promise((resolve) => {
    held.push({ sinceMs: performance.now(), release: () => resolve([]) });
  });

beforeEach(async () => {
  held = [];
  waiting = new Set();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  log = await createRequestLog({
    pool,
    spool: { directory: spool.path, maxBytes: 64 * 1024 * 1024 },
    onBrokenSpool: (path) => expect.unreachable(path),
    whenFull: 'refuse',
    clock: { monotonicMs: () => performance.now() },
    printer: printerInto(),
    insert: insertHeld,
  });
});

afterEach(async () => {
  vi.useRealTimers();
  for (const { release } of held) release();
  await log.drain(0);
});

/** Records rows and lets the writers take them. */
async function record(count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const row = { sinceMs: performance.now(), recorded: log.record(logRow()) };
    waiting.add(row);
    void row.recorded.then(() => waiting.delete(row));
  }
  await nextTurn();
}

async function release(index: number): Promise<void> {
  held.splice(index, 1)[0]?.release();
  await nextTurn();
}

/** One millisecond; then every row that has waited long enough must find its place without further time. */
async function tick(): Promise<void> {
  vi.advanceTimersByTime(1);
  await nextTurn();
  const overdue = [...waiting].filter(({ sinceMs }) => performance.now() - sinceMs >= waitMs);
  await Promise.all(overdue.map(({ recorded }) => recorded));
  const { accepted, written, spooled, dropped, queueDepth, oldestRowAgeMs } = log.stats();
  expect(queueDepth).toBe(waiting.size);
  expect(accepted).toBe(written + spooled + dropped + queueDepth);
  const [oldest] = waiting;
  expect(oldestRowAgeMs).toBe(oldest === undefined ? 0 : performance.now() - oldest.sinceMs);
}

async function pass(milliseconds: number): Promise<void> {
  for (let passed = 0; passed < milliseconds; passed += 1) await tick();
}

test('rows of the second writer do not wait for the deadline of younger rows of the first', async () => {
  await record(1);
  await pass(5);
  await record(40);
  await pass(3);
  await release(0);
  await pass(19);
  await record(40);
  expect(held).toHaveLength(2);
  await pass(waitMs);
  expect(log.stats()).toMatchObject({ written: 1, spooled: 80, dropped: 0, away: false });
});

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'no row waits longer, however commits and arrivals fall: seed %i',
  async (seed) => {
    const random = new Random(seed);
    for (let step = 0; step < 400; step += 1) {
      if (random.chance(0.2)) await record(1 + random.below(60));
      const late = held.findIndex(({ sinceMs }) => performance.now() - sinceMs >= longestHoldMs);
      if (late >= 0) await release(late);
      else if (held.length > 0 && random.chance(0.05)) await release(random.below(held.length));
      await tick();
    }
    expect(log.stats()).toMatchObject({ away: false, dropped: 0 });
  },
);
