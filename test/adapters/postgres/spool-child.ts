import { encodeLogRow } from '../../../src/adapters/postgres/encode-log-rows.ts';
import { openSpool } from '../../../src/adapters/spool/spool-slots.ts';
import { logRow } from './log-rows.ts';

/** `spool-child.ts <directory> <rows> [same-rows]`: spools rows, then dies without closing anything. */
const [directory = '', count = '0', sameRows] = process.argv.slice(2);
const spool = await openSpool({ directory, maxBytes: 16 * 1024 * 1024 });
for (let index = 0; index < Number(count); index += 1) {
  const rowId = `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`;
  await spool.append(encodeLogRow(logRow(sameRows === undefined ? {} : { rowId })));
}
process.kill(process.pid, 'SIGKILL');
