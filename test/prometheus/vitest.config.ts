import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** For `npm run test:prometheus`: apart from `npm test`, since it needs Prometheus (TEST_PROMETHEUS, TEST_PROMTOOL). */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, '../..'),
    include: ['test/prometheus/**/*.test.ts'],
    setupFiles: ['test/harness/measure/try-again-when-held-up.ts'],
    pool: 'forks',
    // The run with faults measures time; what runs beside it would be measured too.
    maxWorkers: 1,
    // promtool takes a quarter of a minute for some alerts, and several times that on a busy machine.
    testTimeout: 120_000,
    // A hook drives the whole run.
    hookTimeout: 180_000,
    expect: { poll: { timeout: 45_000 } },
    reporters: [['default', { summary: false }], './test/harness/scorecard/tally-reporter.ts'],
  },
});
