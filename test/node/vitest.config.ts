import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** For `npm run test:node`: apart from `npm test`, since it needs a Kubernetes cluster with a real node. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, '../..'),
    include: ['test/node/*.test.ts'],
    globalSetup: 'test/node/support/stores.ts',
    setupFiles: ['test/harness/measure/try-again-when-held-up.ts'],
    pool: 'forks',
    // One small node, and one release that the files share.
    maxWorkers: 1,
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 45_000 } },
    reporters: [['default', { summary: false }], './test/harness/scorecard/tally-reporter.ts'],
  },
});
