import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** For `npm run test:cluster`: apart from `npm test`, since it needs Helm and a Kubernetes API. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, '../..'),
    include: ['test/cluster/*.test.ts'],
    setupFiles: ['test/harness/measure/try-again-when-held-up.ts'],
    pool: 'forks',
    // One API server on a small machine: more at once only slows each other down.
    maxWorkers: 1,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 45_000 } },
    reporters: [['default', { summary: false }], './test/harness/scorecard/tally-reporter.ts'],
  },
});
