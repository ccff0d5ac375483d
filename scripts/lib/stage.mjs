import { existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { handleStopSignals, isStopped, run } from './children.mjs';
import { ensureInstalled } from './install.mjs';
import { findNode } from './node-binary.mjs';
import { inProject, LaunchError, root } from './project.mjs';
import { makeRunFolder } from './run-folder.mjs';

/** What the stages beside `npm test` share. Each ends with a line "N passed, N failed, N skipped". */

const oneFailure = { passed: 0, failed: 1, skipped: 0 };

/**
 * Runs a stage: packages installed, under a Node that is new enough (stages import TypeScript), with its tally told and
 * turned into the exit code. `work(node)` resolves with the tally; what it throws counts as one failure. `script` is the
 * stage's own path from the project's root.
 */
export async function runStage(script, work) {
  try {
    handleStopSignals();
    await ensureInstalled();
    const node = isStopped() ? null : await findNode();
    if (isStopped()) process.exitCode = report(oneFailure);
    else if (node !== process.execPath) process.exitCode = await repeatUnder(node, script);
    else process.exitCode = report(await work(node));
  } catch (error) {
    console.error(error instanceof LaunchError || error?.name === 'StartError' ? error.message : error);
    process.exitCode = report(oneFailure);
  }
}

function report({ passed, failed, skipped }) {
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  return failed === 0 ? 0 : 1;
}

async function repeatUnder(node, script) {
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
  const args = [inProject(...script.split('/')), ...process.argv.slice(2)];
  const { code } = await run(node, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  return code ?? 1;
}

/** A tool cannot be had: the stage is skipped and says why, unless all tools are required. */
export function skipOrThrow(error) {
  if (!(error instanceof LaunchError) || process.env.GW_REQUIRE_TOOLS === '1') throw error;
  console.log(`Skipped: ${error.message}`);
  return null;
}

/** The tally of one skipped stage. */
export const oneSkip = { passed: 0, failed: 0, skipped: 1 };

/** The tally of a vitest run with the configuration at `config`, a path from the root. */
export async function vitestTally(node, config, folder, settings) {
  const tallyFile = join(folder, 'tally.json');
  const env = { ...process.env, ...settings, GW_TEST_TALLY_FILE: tallyFile };
  const vitest = [inProject('node_modules', 'vitest', 'vitest.mjs'), 'run', '--config'];
  const args = [...vitest, inProject(...config.split('/')), ...process.argv.slice(2)];
  const { code } = await run(node, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
  if (!existsSync(tallyFile)) throw new LaunchError('The tests did not come to an end.');
  const tally = JSON.parse(readFileSync(tallyFile, 'utf8'));
  if (code !== 0 && tally.failed === 0) tally.failed = 1;
  return tally;
}

/** `work(folder, databaseUrl)` with a fresh Postgres and a folder that are gone afterwards, whatever happens. */
export async function withPostgres(work) {
  const { startPostgres } = await import('../../test/support/postgres.ts');
  const folder = makeRunFolder();
  let postgres;
  try {
    postgres = await startPostgres();
    return await work(folder.path, postgres.url);
  } finally {
    await postgres?.close();
    await folder.remove();
  }
}
