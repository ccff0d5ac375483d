import { spawnSync } from 'node:child_process';
import { build } from './lib/build.mjs';
import { LaunchError } from './lib/project.mjs';
import { oneSkip, runStage, skipOrThrow, vitestTally, withPostgres } from './lib/stage.mjs';

/** Pinned: what it generates and checks changes with its version. */
const packages = ['schemathesis==4.32.5'];

/**
 * `npm run test:schema`: schemathesis over our own OpenAPI document, against the built gateway with fake vendors.
 * `GW_SCHEMA_CASES` asks for another number of cases than 50,000.
 */
await runStage('scripts/schema.mjs', async (node) => {
  const python = await interpreter().catch(skipOrThrow);
  if (python === null) return oneSkip;
  if (!(await build(node))) throw new LaunchError('The build failed; the compiler says why above.');
  return withPostgres((folder, databaseUrl) =>
    vitestTally(node, 'test/schema/vitest.config.ts', folder, {
      TEST_DATABASE_URL: databaseUrl,
      GW_SCHEMA_PYTHON: python,
    }),
  );
});

async function interpreter() {
  if (spawnSync('python3', ['--version'], { stdio: 'ignore' }).status !== 0) {
    throw new LaunchError('schemathesis needs python3.');
  }
  const { pythonWith } = await import('../test/clients/python-venv.ts');
  try {
    return await pythonWith('python3', packages);
  } catch (error) {
    const reason = String(error.stderr ?? error.message)
      .trim()
      .split('\n')
      .at(-1);
    throw new LaunchError(`schemathesis could not be installed: ${reason}`);
  }
}
