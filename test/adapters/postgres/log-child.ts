import { newRowsInto } from '../../../src/adapters/postgres/log-insert.ts';
import { createPool } from '../../../src/adapters/postgres/pool.ts';
import { createRequestLog } from '../../../src/adapters/postgres/request-log.ts';
import { logRow, printerInto } from './log-rows.ts';

/** `log-child.ts <url> <spool>`: records rows and writes the id of each that is recorded, until it is killed. */
const [url = '', directory = ''] = process.argv.slice(2);
const pool = createPool(url, 3);
const log = await createRequestLog({
  pool,
  spool: { directory, maxBytes: 16 * 1024 * 1024 },
  onBrokenSpool: () => process.exit(1),
  whenFull: 'refuse',
  clock: { monotonicMs: () => performance.now() },
  printer: printerInto(),
  insert: newRowsInto(pool, () => {}),
});
for (let flow = 0; flow < 16; flow += 1) {
  void (async () => {
    for (;;) {
      const row = logRow();
      await log.record(row);
      process.stdout.write(`${row.rowId}\n`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  })();
}
