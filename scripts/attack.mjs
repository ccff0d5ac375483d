import { build } from './lib/build.mjs';
import { LaunchError } from './lib/project.mjs';
import { runStage, vitestTally, withPostgres } from './lib/stage.mjs';

/**
 * `npm run test:attack [-- --seed family:number | --base number|random | --share 0.1] [vitest arguments]`: the built
 * gateway, at the chart's default memory, against generated hostility. Cases follow from their seeds, and a seed can be run alone.
 */
await runStage('scripts/attack.mjs', async (node) => {
  const settings = {
    ...take('--seed', 'GW_ATTACK_SEED'),
    ...take('--base', 'GW_ATTACK_BASE'),
    ...take('--share', 'GW_ATTACK_SHARE'),
  };
  if (!(await build(node))) throw new LaunchError('The build failed; the compiler says why above.');
  return withPostgres((folder, databaseUrl) =>
    vitestTally(node, 'test/attack/vitest.config.ts', folder, {
      TEST_DATABASE_URL: databaseUrl,
      ...settings,
    }),
  );
});

/** Takes an option of ours from the command line, so that vitest does not see it. */
function take(option, variable) {
  const at = process.argv.indexOf(option);
  if (at < 0) return {};
  const [, value] = process.argv.splice(at, 2);
  if (value === undefined) throw new LaunchError(`${option} needs a value.`);
  return { [variable]: value };
}
