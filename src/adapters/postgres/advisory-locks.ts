/** Of which one process at a time holds each. Any numbers will do that differ and that no other program here uses. */
export const advisoryLocks = {
  migration: 7_163_001,
  partitions: 7_163_002,
  summing: 7_163_003,
  onlineIndexes: 7_163_004,
} as const;
