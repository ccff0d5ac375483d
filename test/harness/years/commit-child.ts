import { newRowsInto } from '../../../src/adapters/postgres/log-insert.ts';
import { createPool } from '../../../src/adapters/postgres/pool.ts';
import { settledNow } from './settled-now.ts';

/**
 * `node commit-child.ts URL USER`: commits one row every few milliseconds, as a gateway does, in a process of its own that
 * nothing else holds up. Each message asks for the times since the one before, in ms; the channel's end is its own.
 */
const [url = '', userId = ''] = process.argv.slice(2);
const everyMs = 10;
/** As many connections as a gateway has for rows. */
const connections = 3;

const pool = createPool(url, connections);
/** What goes the slow way is no commit of the fast one's. */
const insert = newRowsInto(pool, () => {
  failed += 1;
});
let times: number[] = [];
let failed = 0;

const timer = setInterval(() => {
  const dueMs = performance.now();
  insert([{ settled: settledNow(userId), isOther: false }]).then(
    () => times.push(performance.now() - dueMs),
    () => {
      failed += 1;
    },
  );
}, everyMs);

process.on('message', () => {
  process.send?.({ times, failed });
  times = [];
  failed = 0;
});
process.on('disconnect', () => {
  clearInterval(timer);
  void pool.end();
});
