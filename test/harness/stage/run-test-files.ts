import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { patient } from '../measure/crowding.ts';
import { inProject } from './project.ts';

/** Against hanging only, on a machine that is busy with others. */
const limitMs = 120_000;

/** What vitest says of one file. */
export interface FileResult {
  readonly status: string;
  /** Of the file itself and its hooks, not of its tests. */
  readonly message: string;
}

/**
 * Writes test files (name → text; `test` and the hooks of vitest are globals) into an empty folder, has a vitest of its
 * own run them after these setup files of ours, and returns what came of each.
 */
export async function runTestFiles(
  folder: string,
  files: Readonly<Record<string, string>>,
  setupFiles: readonly string[] = [],
): Promise<Record<string, FileResult | undefined>> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, `${name}.test.mjs`), text);
  const outputFile = join(folder, 'outcome.json');
  const waitMs = patient(limitMs);
  const limits = { testTimeout: waitMs, hookTimeout: waitMs, teardownTimeout: waitMs, maxWorkers: 2 };
  const options = { globals: true, pool: 'forks', reporters: ['json'], outputFile, ...limits };
  const test = { ...options, setupFiles: setupFiles.map((path) => inProject(path)) };
  const config = join(folder, 'vitest.config.mjs');
  await writeFile(config, `export default ${JSON.stringify({ root: folder, test })};\n`);
  const args = [inProject('node_modules', 'vitest', 'vitest.mjs'), 'run', '--config', config];
  // What steers this run is not meant for that one.
  const env = { PATH: process.env['PATH'] };
  await once(spawn(process.execPath, args, { env, stdio: 'ignore' }), 'exit');
  const { testResults } = JSON.parse(await readFile(outputFile, 'utf8')) as {
    testResults: (FileResult & { name: string })[];
  };
  const resultOf = (name: string) => testResults.find((one) => one.name.endsWith(`/${name}.test.mjs`));
  return Object.fromEntries(Object.keys(files).map((name) => [name, resultOf(name)]));
}
