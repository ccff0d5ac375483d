import { mustBuild } from '../stage/build.ts';
import { StageError } from '../stage/project.ts';
import { runStage, suiteTally, withPostgres } from '../stage/run-stage.ts';

/**
 * `npm run test:attack [-- --seed family:number | --base number|random | --share 0.1] [vitest arguments]`: the built
 * gateway, at the chart's default memory, against generated hostility. Cases follow from their seeds, and a seed can be
 * run alone.
 */
await runStage(async () => {
  const settings = {
    ...take('--seed', 'GW_ATTACK_SEED'),
    ...take('--base', 'GW_ATTACK_BASE'),
    ...take('--share', 'GW_ATTACK_SHARE'),
  };
  await mustBuild();
  return await withPostgres((folder, databaseUrl) =>
    suiteTally('attack', folder, { TEST_DATABASE_URL: databaseUrl, ...settings }),
  );
});

/** Takes an option of ours from the command line, so that vitest does not see it. */
function take(option: string, variable: string): Record<string, string> {
  const at = process.argv.indexOf(option);
  if (at < 0) return {};
  const [, value] = process.argv.splice(at, 2);
  if (value === undefined) throw new StageError(`${option} needs a value.`);
  return { [variable]: value };
}
