import type { ViteUserConfig } from 'vitest/config';
import { configDefaults, defineConfig } from 'vitest/config';
import { patient } from './test/harness/measure/crowding.ts';

type TestOptions = NonNullable<ViteUserConfig['test']>;

const tryAgain = 'test/harness/measure/try-again-when-held-up.ts';
const leaveNothingBehind = 'test/harness/measure/leave-nothing-behind.ts';
const brief: ['default', { summary: boolean }] = ['default', { summary: false }];
const tally = './test/harness/scorecard/tally-reporter.ts';
/** Makes each test a row of docs/faults.md; the attacks write theirs themselves. */
const rows = './test/harness/scorecard/scorecard-reporter.ts';

/**
 * Folders of test/ that are a stage of their own, and why they are apart from `npm test`. One is run by
 * `npm run test:NAME`, or with what it needs in the environment by `npx vitest run --mode NAME`. Here is what differs.
 */
const stages: Readonly<Record<string, TestOptions>> = {
  /** Measures one process: nothing may run beside it. */
  attack: {
    maxWorkers: 1,
    // A test is some hundred cases; a failing one is run again in halves, until the one seed is found.
    testTimeout: 300_000,
  },
  /** Times are only worth something on a quiet machine; `npm run bench:micro`. */
  bench: {
    benchmark: { include: ['test/bench/*.bench.ts'] },
    // One file at a time: what runs beside another is measured too.
    fileParallelism: false,
    setupFiles: [leaveNothingBehind],
    reporters: [brief],
  },
  /** Installs other people's clients. */
  'clients-matrix': { reporters: [brief, './test/clients-matrix/table-reporter.ts', tally] },
  /** Needs Helm and a Kubernetes API. */
  cluster: {
    // One API server on a small machine: more at once only slows each other down.
    maxWorkers: 1,
    // A pod is there in seconds, and in minutes on a machine that is busy with others.
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
  /** Needs Helm and real proxies. */
  ingress: {},
  /** Takes minutes and both cores. */
  kills: {
    // A rate is asked for: what runs beside it would take from it.
    maxWorkers: 1,
    // Twenty drains take four minutes on a machine of their own, and several times that on a shared one.
    testTimeout: 1_800_000,
    reporters: [brief, tally, rows],
  },
  /** Needs a Kubernetes cluster with a real node. */
  node: {
    globalSetup: 'test/node/support/stores.ts',
    // One small node, and one release that the files share.
    maxWorkers: 1,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
  /** Needs Prometheus (TEST_PROMETHEUS, TEST_PROMTOOL). */
  prometheus: {
    // The run with faults measures time; what runs beside it would be measured too.
    maxWorkers: 1,
    // promtool takes a quarter of a minute for some alerts, and several times that on a busy machine.
    testTimeout: 300_000,
    // A hook drives the whole run.
    hookTimeout: 180_000,
  },
  /** Needs Go's programs and root: publishes a release before the first test. */
  release: { globalSetup: 'test/release/support/published.ts', maxWorkers: 1 },
  /** Installs a model server. */
  'real-model': {},
  /** Needs PgBouncer and a forward proxy; starts servers by the handful. */
  stores: { maxWorkers: 1, testTimeout: 180_000, hookTimeout: 180_000 },
  /** Needs Python. */
  schema: {
    // 50,000 generated requests take minutes; the limit of one job is in the test.
    testTimeout: 3_600_000,
    reporters: [brief, tally, rows],
  },
};

/** `npm test`: everything else. The mode of vitest where none is named. */
const rest: TestOptions = {
  include: ['test/**/*.test.ts'],
  exclude: [...configDefaults.exclude, `test/{${Object.keys(stages).join(',')}}/**`],
  reporters: ['default', tally, rows],
};

export default defineConfig(({ mode }) => {
  const own = mode === 'test' ? rest : stages[mode];
  if (own === undefined) throw new Error(`--mode is one of ${Object.keys(stages).join(', ')}, not ${mode}`);
  return {
    test: {
      include: [`test/${mode}/**/*.test.ts`],
      setupFiles: [tryAgain, leaveNothingBehind],
      pool: 'forks',
      // Each worker drives real servers of its own; more of them only slow each other down.
      maxWorkers: 2,
      // Against hanging only: a shared machine may stand still for seconds. What is promised in time is measured in the tests.
      testTimeout: patient(60_000),
      // A hook may start a Postgres (about 2 s on two busy cores), a gateway, a proxy or Helm.
      hookTimeout: patient(120_000),
      // A wait for an event fails before its test does, and says what it waited for.
      expect: { poll: { timeout: patient(45_000) } },
      reporters: [brief, tally],
      ...own,
    },
  };
});
