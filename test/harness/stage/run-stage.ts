import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startPostgres } from '../servers/postgres.ts';
import { handleStopSignals, run } from './children.ts';
import { inProject, root, StageError } from './project.ts';
import { makeRunFolder } from './run-folder.ts';

/** What all stages share. Each ends with a line "N passed, N failed, N skipped". */

export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

const oneFailure: Tally = { passed: 0, failed: 1, skipped: 0 };
/** The tally of one skipped stage. */
export const oneSkip: Tally = { passed: 0, failed: 0, skipped: 1 };

/** Runs a stage, prints its tally and turns it into the exit code; what `work` throws counts as one failure. */
export async function runStage(work: () => Promise<Tally>): Promise<void> {
  handleStopSignals();
  const { passed, failed, skipped } = await work().catch(failure);
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  process.exitCode = failed === 0 ? 0 : 1;
}

/** One failure, told; a reason that is no bug of ours is one line. */
export function failure(error: unknown): Tally {
  const isReason = error instanceof Error && ['StageError', 'StartError'].includes(error.name);
  console.error(isReason ? error.message : error);
  return oneFailure;
}

/** A tool cannot be had: the stage is skipped and says why, unless all tools are required. */
export function skipOrThrow(error: unknown): null {
  if (!(error instanceof StageError) || process.env['GW_REQUIRE_TOOLS'] === '1') throw error;
  console.log(`Skipped: ${error.message}`);
  return null;
}

/** The tally of a vitest run: `vitest` arguments, then those of the command line; `env` comes after our own. */
export async function vitestTally(
  vitest: readonly string[],
  folder: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Tally> {
  const tallyFile = join(folder, 'tally.json');
  const program = inProject('node_modules', 'vitest', 'vitest.mjs');
  const { code } = await run(process.execPath, [program, 'run', ...vitest, ...process.argv.slice(2)], {
    cwd: root,
    env: { ...process.env, ...env, GW_TEST_TALLY_FILE: tallyFile },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (!existsSync(tallyFile)) throw new StageError('The tests did not come to an end.');
  const tally = JSON.parse(readFileSync(tallyFile, 'utf8')) as Tally;
  // Coverage thresholds and the like fail a run without a failed test.
  if (code !== 0 && tally.failed === 0) tally.failed = 1;
  return tally;
}

/** The tests of `test/<suite>/` with what vitest.config.ts says of that stage. */
export function suiteTally(
  suite: string,
  folder: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Tally> {
  return vitestTally(['--mode', suite], folder, env);
}

/** `work` with a folder that is gone afterwards, whatever happens. */
export async function withRunFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = makeRunFolder();
  try {
    return await work(folder.path);
  } finally {
    await folder.remove();
  }
}

/** `work(folder, databaseUrl, pid)` with a fresh Postgres and a folder that are gone afterwards, whatever happens. */
export function withPostgres<T>(
  work: (folder: string, databaseUrl: string, pid: number) => Promise<T>,
): Promise<T> {
  return withRunFolder(async (folder) => {
    const postgres = await startPostgres();
    try {
      return await work(folder, postgres.url, postgres.pid);
    } finally {
      await postgres.close();
    }
  });
}
