import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** For `npm run test:ingress`: apart from `npm test`, since it needs Helm and real proxies. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, '../..'),
    include: ['test/ingress/**/*.test.ts'],
    setupFiles: ['test/harness/measure/try-again-when-held-up.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    // Gateways, proxies and Helm start here.
    hookTimeout: 120_000,
    expect: { poll: { timeout: 45_000 } },
    reporters: [['default', { summary: false }], './test/harness/scorecard/tally-reporter.ts'],
  },
});
