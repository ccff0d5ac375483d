import type { Family } from './attack-case.ts';
import { costlyCase } from './cases/costly-cases.ts';
import { costlyTextCase } from './cases/costly-text-cases.ts';
import { framingCase } from './cases/framing-cases.ts';
import { headCase } from './cases/head-cases.ts';
import { leaveCase, slowPostgresMs } from './cases/leave-cases.ts';
import { readCase } from './cases/read-cases.ts';
import { hoardCase, sendCase } from './cases/send-cases.ts';
import { tenantCase } from './cases/tenant-cases.ts';
import { vendorJsonCase, vendorStreamCase } from './cases/vendor-cases.ts';
import { warmCase } from './cases/warm-cases.ts';

/** More at once would only measure how this process waits for itself. */
const usualWidth = 24;

/**
 * A 64 KiB read of one-byte chunks is eleven thousand calls of Node's parser, some 20 ms, and a turn of the loop serves
 * all that has come: more connections at once than this measure the parser, not the gateway.
 */
const hoarders = 8;

/** Bodies of 20 MB. Of two that end within one turn of the loop, each is counted in it. */
const largeAtOnce = 1;

const family = (name: string, make: Family['make'], count: number, more: Partial<Family> = {}): Family => ({
  name,
  make,
  count,
  width: usualWidth,
  postgresDelayMs: 0,
  ...more,
});

/** The whole attack. The counts add up to what the stage promises. */
export const families: readonly Family[] = [
  family('send', sendCase, 4_000),
  family('hoard', hoardCase, 400, { width: hoarders }),
  family('head', headCase, 1_200),
  family('costly', costlyCase, 400, { width: 48 }),
  family('costly-text', costlyTextCase, 40, { width: largeAtOnce }),
  family('read', readCase, 3_200),
  family('vendor-json', vendorJsonCase, 4_000),
  family('vendor-stream', vendorStreamCase, 3_200),
  family('tenants', tenantCase, 800, { width: 48 }),
  family('framing', framingCase, 3_200),
  family('leave', leaveCase, 2_000, { width: 48, postgresDelayMs: slowPostgresMs }),
];

/** The stage's promise. */
export const leastCases = 20_000;

/** Requests and answers of usual sizes, and the largest, before anything is measured. */
export const warmUpFamilies: readonly Family[] = [
  family('warm-up', warmCase, 300),
  // What an allocator keeps of a body of 20 MB, it keeps for the next one.
  family('warm-up-text', costlyTextCase, 12, { width: largeAtOnce }),
];
