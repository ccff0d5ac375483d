import { fork } from 'node:child_process';
import { once } from 'node:events';
import { homedir } from 'node:os';
import { measureParts } from './bench/micro.mjs';
import { build } from './lib/build.mjs';
import { isStopped, run } from './lib/children.mjs';
import { inProject, LaunchError, root } from './lib/project.mjs';
import { oneSkip, runStage, skipOrThrow, withPostgres } from './lib/stage.mjs';
import { findK6 } from './load-k6.mjs';
import { exactly, failures, patient, runs } from './load-runs.mjs';

/** A k6 run that takes longer is stuck: each is meant to take some five seconds. */
const RUN_LIMIT_MS = 60_000;
const VENDOR_START_MS = 10_000;
/** k6 says so when a threshold was crossed. */
const THRESHOLDS_CROSSED = 99;

/** Nothing of our own environment that would send a script elsewhere or change its limits. */
const plain = { PATH: process.env.PATH, HOME: homedir(), K6_AUTO_EXTENSION_RESOLUTION: 'false' };

/**
 * `npm run test:load [-- script ...]`: the k6 scripts of load-tests/, each for a few seconds against the built gateway
 * with a vendor of its own, all on loopback; without names the micro-benches too, once each. Without k6, and Go to build
 * it, the run is skipped, or fails with GW_REQUIRE_TOOLS=1.
 */
await runStage('scripts/load.mjs', async (node) => {
  const k6 = await findK6().catch(skipOrThrow);
  if (k6 === null) return oneSkip;
  if (!(await build(node))) throw new LaunchError('The build failed; the compiler says why above.');
  return withPostgres(async (folder, databaseUrl) => {
    const tally = await withGateway(databaseUrl, (urls) => testAll(k6, urls));
    if (process.argv.length > 2 || isStopped()) return tally;
    return (await microBenchesRun(node, folder))
      ? { ...tally, passed: tally.passed + 1 }
      : { ...tally, failed: tally.failed + 1 };
  });
});

/** What `work(urls)` gives; vendor and gateway are gone afterwards, whatever happens. */
async function withGateway(databaseUrl, work) {
  const { startGateway } = await import('../test/support/start-gateway.ts');
  let vendor;
  let gateway;
  try {
    process.env.TEST_DATABASE_URL = databaseUrl;
    vendor = await startVendor();
    const vendors = { env: { GW_OPENAI_BASE_URL: vendor.url, GW_SARVAM_BASE_URL: vendor.url } };
    gateway = await startGateway({ vendors });
    return await work({
      url: gateway.url,
      vendorUrl: vendor.url,
      metricsUrl: `${gateway.adminUrl}/metrics`,
    });
  } finally {
    await gateway?.stop();
    vendor?.child.kill();
  }
}

/** A process of its own, so that the load is not on this one. */
async function startVendor() {
  const child = fork(inProject('load-tests', 'vendor.mjs'));
  const [{ url }] = await once(child, 'message', { signal: AbortSignal.timeout(VENDOR_START_MS) });
  return { child, url };
}

/** Each once: what nobody runs would rot. */
async function microBenchesRun(node, folder) {
  try {
    const parts = await measureParts(node, folder, { smoke: true });
    console.log(`\nok: ${parts.length} micro-benches run`);
    return true;
  } catch (error) {
    if (!(error instanceof LaunchError)) throw error;
    console.log(`\nFAILED: ${error.message}`);
    return false;
  }
}

async function testAll(k6, urls) {
  const names = process.argv.slice(2);
  const mustFail = failures(urls).map((test) => ({
    ...test,
    title: `${test.script} notices ${test.title}`,
  }));
  const chosen = [...runs(urls), ...mustFail].filter(
    ({ script }) => names.length === 0 || names.includes(script),
  );
  const tally = { passed: 0, failed: 0, skipped: 0 };
  for (const test of chosen) {
    if (isStopped()) return { ...tally, failed: tally.failed + 1 };
    if (await passes(k6, urls.url, test)) tally.passed += 1;
    else tally.failed += 1;
  }
  return tally;
}

async function passes(k6, url, { script, title = script, args = [], env = {}, crossed = null }) {
  console.log(`\n-- ${title}`);
  // No control port, no usage report, no look-up of extensions: nothing but the gateway is spoken to.
  const quiet = ['run', '--quiet', '--no-color', '--no-usage-report', '--address', ''];
  const { code, output } = await run(k6, [...quiet, ...args, inProject('load-tests', script)], {
    cwd: root,
    env: { ...plain, ...exactly, ...patient, BASE_URL: url, ...env },
    stdio: ['ignore', 'inherit', 'pipe'],
    timeout: RUN_LIMIT_MS,
    killSignal: 'SIGKILL',
  });
  process.stderr.write(output);
  const found = /thresholds on metrics '(.+)' have been crossed/.exec(output)?.[1].split(', ') ?? [];
  const isRight = crossed === null ? code === 0 : code === THRESHOLDS_CROSSED && found.includes(crossed);
  console.log(`${isRight ? 'ok' : 'FAILED'}: ${title} (k6 ended with ${code})`);
  return isRight;
}
