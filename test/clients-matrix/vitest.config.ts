import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** For `npm run test:clients`: apart from `npm test`, since it installs other people's clients. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, '../..'),
    include: ['test/clients-matrix/**/*.test.ts'],
    setupFiles: ['test/harness/measure/try-again-when-held-up.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    // A gateway and a driver start here.
    hookTimeout: 120_000,
    expect: { poll: { timeout: 45_000 } },
    reporters: [
      ['default', { summary: false }],
      './test/clients-matrix/table-reporter.ts',
      './test/harness/scorecard/tally-reporter.ts',
    ],
  },
});
