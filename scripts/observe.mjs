import { setTimeout as delay } from 'node:timers/promises';
import { build } from './lib/build.mjs';
import { handleStopSignals, isStopped, run } from './lib/children.mjs';
import { ensureInstalled } from './lib/install.mjs';
import { findNode } from './lib/node-binary.mjs';
import { inCache, inProject, LaunchError, root } from './lib/project.mjs';
import { makeRunFolder } from './lib/run-folder.mjs';
import { findPrometheus } from './observe/find-prometheus.mjs';

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

async function main() {
  handleStopSignals();
  await ensureInstalled();
  const node = isStopped() ? null : await findNode();
  if (isStopped()) return 0;
  if (node !== process.execPath) return await repeatUnder(node);
  const prometheus = await findPrometheus().catch(explain);
  if (isStopped()) return 0;
  if (!(await build(node))) throw new LaunchError('The build failed; the compiler says why above.');
  const folder = makeRunFolder();
  let demo;
  try {
    const { prepareDemo } = await import('./observe/demo.ts');
    demo = await prepareDemo(folder.path);
    return await runGateway(node, demo, prometheus?.prometheus ?? null);
  } finally {
    await demo?.close();
    await folder.remove();
  }
}

/** Modules of ours are TypeScript, which only the newer Node reads. */
async function repeatUnder(node) {
  const stdio = ['ignore', 'inherit', 'inherit', 'ipc'];
  const { code } = await run(node, [inProject('scripts', 'observe.mjs')], { cwd: root, stdio });
  return code ?? 1;
}

function explain(error) {
  if (!(error instanceof LaunchError)) throw error;
  console.log(error.message);
  return null;
}

/** Until it ends; the demo begins as soon as it is ready. */
async function runGateway(node, demo, prometheus) {
  const env = { NODE_COMPILE_CACHE: inCache('compiled'), ...defaults, ...process.env, ...demo.env };
  for (const name of ['DATABASE_URL', 'REDIS_URL']) delete env[name];
  const stdio = ['ignore', 'inherit', 'inherit', 'ipc'];
  let isOver = false;
  const gateway = run(node, [inProject('dist', 'dev.js')], { cwd: root, env, stdio }).finally(() => {
    isOver = true;
  });
  const adminUrl = `http://${env.GW_ADMIN_HOST}:${env.GW_ADMIN_PORT}`;
  while (!isOver && !(await isReady(adminUrl))) await delay(POLL_MS);
  if (!isOver && !isStopped())
    console.log(await demo.begin(`http://${env.GW_HOST}:${env.PORT}`, adminUrl, prometheus));
  const { code } = await gateway;
  return code ?? 1;
}

async function isReady(url) {
  const signal = AbortSignal.timeout(CALL_LIMIT_MS);
  const answer = await fetch(`${url}/readyz`, { signal }).catch(() => null);
  await answer?.arrayBuffer();
  return answer?.ok === true;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof LaunchError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
