import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Stages of their own, by the folder of each; CONTRIBUTING.md says what they need.
    exclude: [
      ...configDefaults.exclude,
      'test/{attack,clients-matrix,cluster,ingress,kills,node,prometheus,real-model,schema}/**',
    ],
    setupFiles: ['test/harness/measure/try-again-when-held-up.ts'],
    pool: 'forks',
    // Each worker drives real servers of its own; more of them only slow each other down.
    maxWorkers: 2,
    // Against hanging only: a shared machine may stand still for seconds. What is promised in time is measured in the tests.
    testTimeout: 60_000,
    // A hook may start a Postgres (about 2 s on two busy cores).
    hookTimeout: 120_000,
    // A wait for an event fails before its test does, and says what it waited for.
    expect: { poll: { timeout: 45_000 } },
    reporters: [
      'default',
      './test/harness/scorecard/tally-reporter.ts',
      './test/harness/scorecard/scorecard-reporter.ts',
    ],
  },
});
