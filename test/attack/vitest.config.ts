import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** For `npm run test:attack`: apart from `npm test`, since it measures one process and nothing may run beside it. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, '../..'),
    include: ['test/attack/**/*.test.ts'],
    setupFiles: ['test/harness/measure/try-again-when-held-up.ts'],
    pool: 'forks',
    maxWorkers: 1,
    // A test is some hundred cases; a failing one is run again in halves, until the one seed is found.
    testTimeout: 300_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 45_000 } },
    reporters: [['default', { summary: false }], './test/harness/scorecard/tally-reporter.ts'],
  },
});
