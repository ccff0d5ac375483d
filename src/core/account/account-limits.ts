/** What one user may have and do; the descriptions of errors name these numbers. */

/** Of one provider. Bounds what one account query loads and one override has to choose from. */
export const maxUserServerKeys = 100;

/**
 * Bytes that all keys of a user may take: sealed secrets, addresses, regions and labels. A hundred keys of usual length
 * fit, and every account fits into the cache of accounts, whose largest entry is 256 KiB: one that did not would be
 * read from Postgres for each of its requests.
 */
export const maxKeyBytesPerUser = 96 * 1024;

/** Enough for every environment and machine of a team; each is a row that authentication may be asked for. */
export const maxServiceKeysPerUser = 20;

/** In a minute: more than anybody needs who has a key for each vendor, too few to look through a network with. */
export const maxKeyChecksPerMinute = 10;

/** Questions to Postgres under way at once, of any pool that has room for them and one more. */
export const maxQueriesUnderWay = 3;
