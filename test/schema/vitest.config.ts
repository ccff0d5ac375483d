import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: join(import.meta.dirname, '../..'),
    include: ['test/schema/conformance.test.ts'],
    setupFiles: ['test/harness/measure/try-again-when-held-up.ts'],
    pool: 'forks',
    // 50,000 generated requests take minutes; the limit of one job is in the test.
    testTimeout: 3_600_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 45_000 } },
    reporters: [
      'default',
      './test/harness/scorecard/tally-reporter.ts',
      './test/harness/scorecard/scorecard-reporter.ts',
    ],
  },
});
