import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** For `npm run test:real-model`: apart from `npm test`, since it installs a model server. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, '../..'),
    include: ['test/real-model/real-model.test.ts'],
    setupFiles: ['test/harness/measure/try-again-when-held-up.ts'],
    pool: 'forks',
    testTimeout: 60_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 45_000 } },
    reporters: [['default', { summary: false }], './test/harness/scorecard/tally-reporter.ts'],
  },
});
