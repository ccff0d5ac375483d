import type { CacheOwner } from '../../../src/chat/ports.ts';

/** With as much room as anybody could want. */
export const ownedBy = (userId: string): CacheOwner => ({ userId, mostBytes: 1024 * 1024 * 1024 });
