import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** For `npm run test:kills`: apart from `npm test`, since it takes minutes and both cores. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, '../..'),
    include: ['test/kills/*.test.ts'],
    setupFiles: ['test/harness/measure/try-again-when-held-up.ts'],
    pool: 'forks',
    // A rate is asked for: what runs beside it would take from it.
    maxWorkers: 1,
    // Twenty drains take four minutes on a machine of their own, and several times that on a shared one.
    testTimeout: 1_800_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 45_000 } },
    reporters: [
      ['default', { summary: false }],
      './test/harness/scorecard/tally-reporter.ts',
      './test/harness/scorecard/scorecard-reporter.ts',
    ],
  },
});
