import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { askDashboard } from './answers.ts';
import { readDashboards } from './dashboards.ts';
import { demoTables } from './demo-world.ts';
import { drawDashboard } from './draw-dashboard.ts';
import { runFaults } from './run-faults.ts';
import { startWorld } from './world.ts';

const RUN_SECONDS = 150;
const REQUESTS_PER_SECOND = 16;
const STEP_SECONDS = 5;
const RATE_INTERVAL = '15s';
/** Rates need this long to be steady. */
const WARM_UP_SECONDS = 8;

/** Said where it applies. */
const STAND_IN = 'Series named kube_… come from a stand-in for kube-state-metrics.';

const picturesFolder = join(import.meta.dirname, '../../../docs/pictures');

/** A run of its own with faults, and a picture of each dashboard as Prometheus saw it. Resolves with the file names. */
export async function drawRun(program: string): Promise<readonly string[]> {
  const world = await startWorld(program, demoTables());
  try {
    const begin = Date.now() / 1_000;
    const options = { seconds: RUN_SECONDS, requestsPerSecond: REQUESTS_PER_SECOND, outage: true };
    const { endedAt: to } = await runFaults(world, {
      ...options,
      newTables: demoTables('cooldown: { first_seconds: 4 }'),
    });
    const window = { from: begin + WARM_UP_SECONDS, to, step: STEP_SECONDS, rateInterval: RATE_INTERVAL };
    const caption = [
      `Drawn from Prometheus's answers to this dashboard's queries in a run of ${Math.round(to - begin)} seconds ` +
        `with injected faults on ${new Date().toISOString().slice(0, 10)};`,
      'not a Grafana screenshot. Times are UTC.',
    ];
    mkdirSync(picturesFolder, { recursive: true });
    const files: string[] = [];
    for (const dashboard of readDashboards()) {
      const answers = await askDashboard(world.prometheus, dashboard, window);
      const file = join(picturesFolder, `${dashboard.name}.svg`);
      const more = JSON.stringify(dashboard.panels).includes('kube_') ? [STAND_IN] : [];
      writeFileSync(file, drawDashboard(dashboard, answers, { window, caption: [...caption, ...more] }));
      files.push(file);
    }
    return files;
  } finally {
    await world.close();
  }
}
