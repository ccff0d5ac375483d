import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../stage/children.ts';
import { inProject, root, StageError } from '../stage/project.ts';

/** What test/bench/yardstick.ts notes of one part. */
export interface Measurement {
  readonly yardstick: string;
  readonly name: string;
  readonly microseconds: number;
  /** Against the yardstick. */
  readonly ratio: number;
}

/**
 * The measurements of test/bench/*.bench.ts. With `smoke` each part runs once, and the times mean nothing. Throws
 * StageError when one fails.
 */
export async function measureParts(
  folder: string,
  { smoke }: { readonly smoke: boolean },
): Promise<Measurement[]> {
  const file = join(folder, 'parts.ndjson');
  const env = { ...process.env, GW_BENCH_FILE: file, GW_BENCH_SMOKE: smoke ? '1' : '' };
  const args = [inProject('node_modules', 'vitest', 'vitest.mjs'), 'bench', '--run', '--mode', 'bench'];
  const { code, output } = await run(process.execPath, args, {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (code !== 0 || !existsSync(file)) throw new StageError(`The micro-benches failed:\n${output}`);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Measurement);
}
