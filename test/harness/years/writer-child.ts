import { setTimeout as delay } from 'node:timers/promises';
import { newRowsInto } from '../../../src/adapters/postgres/log-insert.ts';
import { createPool } from '../../../src/adapters/postgres/pool.ts';
import { createRequestLog } from '../../../src/adapters/postgres/request-log.ts';
import { sumUp } from '../../../src/adapters/postgres/rollup-keeper.ts';
import { userId } from './fill.ts';
import { settledNow } from './settled-now.ts';

/**
 * `node writer-child.ts URL SPOOL OPEN`: the log of one replica, with OPEN requests that end at any time, each followed by
 * the next once its row is kept, and its turns at summing up. Each message asks how many rows were kept where.
 */
const [url = '', directory = '', open = '1'] = process.argv.slice(2);
/** As a gateway has. */
const connections = 3;
const sumUpEveryMs = 10_000;
const users = 1_000;
const awayMs = 10;

const pool = createPool(url, connections);
const log = await createRequestLog({
  pool,
  spool: { directory, maxBytes: 64 * 1024 * 1024 },
  whenFull: 'refuse',
  clock: { monotonicMs: () => performance.now() },
  printer: { print: () => {}, untilLeft: async () => true },
  insert: newRowsInto(pool, () => {}),
  onBrokenSpool: (path, reason) => console.log(`${path}: ${reason}`),
});
const summing = setInterval(() => void sumUp(pool).catch(() => {}), sumUpEveryMs);
let isOver = false;
const flows = Array.from({ length: Number(open) }, async (_, flow) => {
  for (let turn = flow; !isOver; turn += 1) {
    await log.record(settledNow(userId(turn % users)));
    // The spool takes rows faster than any database: what it took says nothing of that.
    while (log.stats().away && !isOver) await delay(awayMs);
  }
});

process.on('message', () => process.send?.(log.stats()));
process.on('disconnect', async () => {
  isOver = true;
  clearInterval(summing);
  await Promise.all(flows);
  await log.drain(5_000);
  await pool.end();
});
