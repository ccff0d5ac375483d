import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../lib/children.mjs';
import { inProject, LaunchError, root } from '../lib/project.mjs';

/**
 * The measurements of test/bench/*.bench.ts, as test/bench/yardstick.ts notes them. With `smoke` each part runs once,
 * and the times mean nothing. Throws LaunchError when one fails.
 */
export async function measureParts(node, folder, { smoke }) {
  const file = join(folder, 'parts.ndjson');
  const env = { ...process.env, GW_BENCH_FILE: file, GW_BENCH_SMOKE: smoke ? '1' : '' };
  const vitest = [inProject('node_modules', 'vitest', 'vitest.mjs'), 'bench', '--run', '--config'];
  const args = [...vitest, inProject('test', 'bench', 'vitest.config.ts')];
  const { code, output } = await run(node, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  if (code !== 0 || !existsSync(file)) throw new LaunchError(`The micro-benches failed:\n${output}`);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line));
}
