import { existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { nodePackages } from './clients/node-packages.mjs';
import { pythonPackages } from './clients/python-packages.mjs';
import { build } from './lib/build.mjs';
import { handleStopSignals, isStopped, run } from './lib/children.mjs';
import { ensureInstalled } from './lib/install.mjs';
import { findNode } from './lib/node-binary.mjs';
import { inProject, LaunchError, root } from './lib/project.mjs';
import { makeRunFolder } from './lib/run-folder.mjs';

/**
 * `npm run test:clients [-- vitest arguments]`: the clients that people use, run against the built gateway with
 * scripted vendors. Prints a table of what worked; the last line is "N passed, N failed, N skipped".
 */
async function main() {
  handleStopSignals();
  await ensureInstalled();
  if (isStopped()) return 1;
  const node = await findNode();
  if (isStopped()) return 1;
  if (node !== process.execPath) return await repeatUnder(node);

  const packages = await nodePackages();
  if (isStopped()) return 1;
  const python = await pythonPackages();
  if (isStopped()) return 1;
  if (!(await build(node))) throw new LaunchError('The build failed; the compiler says why above.');
  const clients = { GW_CLIENT_PACKAGES: packages, ...(python === null ? {} : { GW_CLIENT_PYTHON: python }) };
  return report(await testWith(node, clients));
}

function report({ passed, failed, skipped }) {
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  return failed === 0 ? 0 : 1;
}

/** Postgres is started from TypeScript, which only the newer Node reads. */
async function repeatUnder(node) {
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
  const args = [inProject('scripts', 'clients.mjs'), ...process.argv.slice(2)];
  const { code } = await run(node, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  return code ?? 1;
}

/** The numbers of the tests, run with a fresh Postgres that is gone afterwards, whatever happens. */
async function testWith(node, clients) {
  const { startPostgres } = await import('../test/support/postgres.ts');
  const folder = makeRunFolder();
  let postgres;
  try {
    postgres = await startPostgres();
    const tallyFile = join(folder.path, 'tally.json');
    const env = {
      ...process.env,
      ...clients,
      TEST_DATABASE_URL: postgres.url,
      GW_TEST_TALLY_FILE: tallyFile,
    };
    const vitest = [inProject('node_modules', 'vitest', 'vitest.mjs'), 'run', '--config'];
    const args = [
      ...vitest,
      inProject('test', 'clients-matrix', 'vitest.config.ts'),
      ...process.argv.slice(2),
    ];
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
