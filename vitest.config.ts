import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Stages of their own: one needs Prometheus, the other measures a process alone.
    exclude: [...configDefaults.exclude, 'test/prometheus/**', 'test/attack/**'],
    pool: 'forks',
    // Each worker drives real servers of its own; more of them only slow each other down.
    maxWorkers: 2,
    testTimeout: 15_000,
    // A hook may start a Postgres (about 2 s on two busy cores).
    hookTimeout: 60_000,
    reporters: ['default', './test/support/tally-reporter.ts', './test/support/scorecard-reporter.ts'],
  },
});
