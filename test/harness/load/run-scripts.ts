import { homedir } from 'node:os';
import { isStopped, run } from '../stage/children.ts';
import { inProject, root, StageError } from '../stage/project.ts';
import type { Tally } from '../stage/run-stage.ts';
import type { Run } from './runs.ts';
import { exactly, failures, patient, runs } from './runs.ts';
import type { Urls } from './world.ts';

/** A k6 run that takes longer is stuck: each is meant to take some five seconds. */
const RUN_LIMIT_MS = 60_000;
/** k6 says so when a threshold was crossed. */
const THRESHOLDS_CROSSED = 99;

/** Nothing of our own environment that would send a script elsewhere or change its limits. */
const plain = { PATH: process.env['PATH'], HOME: homedir(), K6_AUTO_EXTENSION_RESOLUTION: 'false' };
// No control port, no usage report, no look-up of extensions: nothing but the gateway is spoken to.
const quiet = ['run', '--quiet', '--no-color', '--no-usage-report', '--address', ''];

/** The runs of these scripts of load-tests/, or of all, one after another. Throws StageError at another name. */
export async function runScripts(k6: string, urls: Urls, names: readonly string[]): Promise<Tally> {
  const all = [...runs(urls), ...failures(urls)];
  const scripts = [...new Set(all.map(({ script }) => script))];
  for (const name of names)
    if (!scripts.includes(name)) throw new StageError(`${name} is none of ${scripts.join(', ')}.`);
  const chosen = all.filter(({ script }) => names.length === 0 || names.includes(script));
  const tally: Tally = { passed: 0, failed: 0, skipped: 0 };
  for (const one of chosen) {
    if (isStopped()) return { ...tally, failed: tally.failed + 1 };
    if (await passes(k6, urls.url, one)) tally.passed += 1;
    else tally.failed += 1;
  }
  return tally;
}

async function passes(k6: string, url: string, one: Run): Promise<boolean> {
  const { script, args = [], env = {}, crossed } = one;
  const title = crossed === undefined ? (one.title ?? script) : `${script} notices ${one.title}`;
  console.log(`\n-- ${title}`);
  const { code, output } = await run(k6, [...quiet, ...args, inProject('load-tests', script)], {
    cwd: root,
    env: { ...plain, ...exactly, ...patient, BASE_URL: url, ...env },
    stdio: ['ignore', 'inherit', 'pipe'],
    timeout: RUN_LIMIT_MS,
    killSignal: 'SIGKILL',
  });
  process.stderr.write(output);
  const found = /thresholds on metrics '(.+)' have been crossed/.exec(output)?.[1]?.split(', ') ?? [];
  const isRight = crossed === undefined ? code === 0 : code === THRESHOLDS_CROSSED && found.includes(crossed);
  console.log(`${isRight ? 'ok' : 'FAILED'}: ${title} (k6 ended with ${code})`);
  return isRight;
}
