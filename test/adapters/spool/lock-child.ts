import { tryLock } from '../../../src/adapters/spool/spool-lock.ts';

/** `lock-child.ts <path>`: takes the lock, says so, and keeps it until it is killed. */
const lock = tryLock(process.argv[2] ?? '');
process.send?.(lock === null ? 'busy' : 'locked');
setInterval(() => lock, 60_000);
