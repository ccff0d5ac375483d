import { setTimeout as delay } from 'node:timers/promises';
import type { Demo } from '../observe/demo.ts';
import { prepareDemo } from '../observe/demo.ts';
import { mustBuild } from '../stage/build.ts';
import { handleStopSignals, isStopped, run } from '../stage/children.ts';
import { inProject, root, StageError } from '../stage/project.ts';
import { findPrometheus } from '../stage/prometheus-programs.ts';
import { withRunFolder } from '../stage/run-stage.ts';

/**
 * `npm run observe`: the gateway as `npm start` runs it, with demo vendors, demo load and faults, a Prometheus that
 * watches, and a page with the dashboards. Its data is new each time and gone afterwards.
 */

const POLL_MS = 100;
const CALL_LIMIT_MS = 2_000;

/** Ports as with `npm start`; the environment overrides each of them. */
const defaults = {
  GW_HOST: '127.0.0.1',
  GW_ADMIN_HOST: '127.0.0.1',
  PORT: '8080',
  GW_ADMIN_PORT: '9090',
  GW_LOG_LEVEL: 'error',
  GW_DRAIN_SECONDS: '1',
};

handleStopSignals();
process.exitCode = await observe().catch((error: unknown) => {
  explain(error);
  return 1;
});

async function observe(): Promise<number> {
  const prometheus = await findPrometheus().catch(explain);
  if (isStopped()) return 0;
  await mustBuild();
  return await withRunFolder(async (folder) => {
    const demo = await prepareDemo(folder);
    try {
      return await runGateway(demo, prometheus?.prometheus ?? null);
    } finally {
      await demo.close();
    }
  });
}

function explain(error: unknown): null {
  if (!(error instanceof StageError)) throw error;
  console.log(error.message);
  return null;
}

/** Until it ends; the demo begins as soon as it is ready. `prometheus` is null where there is none. */
async function runGateway(demo: Demo, prometheus: string | null): Promise<number> {
  const settings = { ...defaults, ...process.env, ...demo.env };
  const env = { ...settings, DATABASE_URL: undefined, REDIS_URL: undefined };
  const over = new AbortController();
  const gateway = run(process.execPath, [inProject('dist', 'dev.js')], {
    cwd: root,
    env,
    // With the channel it learns of our sudden end.
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  }).finally(() => over.abort());
  const adminUrl = `http://${settings.GW_ADMIN_HOST}:${settings.GW_ADMIN_PORT}`;
  while (!over.signal.aborted && !(await isReady(adminUrl))) await delay(POLL_MS);
  if (!over.signal.aborted && !isStopped())
    console.log(await demo.begin(`http://${settings.GW_HOST}:${settings.PORT}`, adminUrl, prometheus));
  const { code } = await gateway;
  return code ?? 1;
}

async function isReady(url: string): Promise<boolean> {
  const signal = AbortSignal.timeout(CALL_LIMIT_MS);
  const answer = await fetch(`${url}/readyz`, { signal }).catch(() => null);
  await answer?.arrayBuffer();
  return answer?.ok === true;
}
