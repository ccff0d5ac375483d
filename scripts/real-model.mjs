import { existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { build } from './lib/build.mjs';
import { handleStopSignals, isStopped, run } from './lib/children.mjs';
import { ensureInstalled } from './lib/install.mjs';
import { findNode } from './lib/node-binary.mjs';
import { inProject, LaunchError, root } from './lib/project.mjs';
import { makeRunFolder } from './lib/run-folder.mjs';
import { modelServerPackage } from './real-model/model-server-package.mjs';

/**
 * `npm run test:real-model [-- vitest arguments]`: llama.cpp's server with a tiny random model, used through the built
 * gateway as a self_hosted key. Where the server cannot be had the run is skipped, or fails with GW_REQUIRE_TOOLS=1.
 * The last line is "N passed, N failed, N skipped".
 */
async function main() {
  handleStopSignals();
  await ensureInstalled();
  if (isStopped()) return 1;
  const node = await findNode();
  if (isStopped()) return 1;
  if (node !== process.execPath) return await repeatUnder(node);

  const server = await modelServerPackage().catch(unavailable);
  if (isStopped()) return 1;
  if (server === null) return report({ passed: 0, failed: 0, skipped: 1 });
  console.log(`Model server: ${server.name}`);
  if (!(await build(node))) throw new LaunchError('The build failed; the compiler says why above.');
  return report(await testWith(node, server));
}

/** Without the server there is nothing to test: a skip, unless all tools are required. */
function unavailable(error) {
  if (!(error instanceof LaunchError) || process.env.GW_REQUIRE_TOOLS === '1') throw error;
  console.log(`Skipped: ${error.message}`);
  return null;
}

function report({ passed, failed, skipped }) {
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  return failed === 0 ? 0 : 1;
}

/** Postgres is started from TypeScript, which only the newer Node reads. */
async function repeatUnder(node) {
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
  const args = [inProject('scripts', 'real-model.mjs'), ...process.argv.slice(2)];
  const { code } = await run(node, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  return code ?? 1;
}

/** The numbers of the tests, run with a fresh Postgres that is gone afterwards, whatever happens. */
async function testWith(node, server) {
  const { startPostgres } = await import('../test/support/postgres.ts');
  const folder = makeRunFolder();
  let postgres;
  try {
    postgres = await startPostgres();
    const tallyFile = join(folder.path, 'tally.json');
    const env = {
      ...process.env,
      TEST_DATABASE_URL: postgres.url,
      GW_TEST_TALLY_FILE: tallyFile,
      GW_TEST_PYTHON: server.python,
      GW_TEST_PYTHON_PACKAGES: server.packages,
    };
    const vitest = [inProject('node_modules', 'vitest', 'vitest.mjs'), 'run', '--config'];
    const args = [...vitest, inProject('test', 'real-model', 'vitest.config.ts'), ...process.argv.slice(2)];
    const { code } = await run(node, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
    if (!existsSync(tallyFile)) throw new LaunchError('The tests did not come to an end.');
    const tally = JSON.parse(readFileSync(tallyFile, 'utf8'));
    if (code !== 0 && tally.failed === 0) tally.failed = 1;
    return tally;
  } finally {
    await postgres?.close();
    await folder.remove();
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof LaunchError || error?.name === 'StartError' ? error.message : error);
  process.exitCode = report({ passed: 0, failed: 1, skipped: 0 });
}
