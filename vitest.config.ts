import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Stages of their own: one needs Prometheus, the other measures a process alone.
    exclude: [...configDefaults.exclude, 'test/prometheus/**', 'test/attack/**'],
    setupFiles: ['test/support/try-again-when-held-up.ts'],
    pool: 'forks',
    // Each worker drives real servers of its own; more of them only slow each other down.
    maxWorkers: 2,
    // Against hanging only: a shared machine may stand still for seconds. What is promised in time is measured in the tests.
    testTimeout: 60_000,
    // A hook may start a Postgres (about 2 s on two busy cores).
    hookTimeout: 120_000,
    // A wait for an event fails before its test does, and says what it waited for.
    expect: { poll: { timeout: 45_000 } },
    reporters: ['default', './test/support/tally-reporter.ts', './test/support/scorecard-reporter.ts'],
  },
});
