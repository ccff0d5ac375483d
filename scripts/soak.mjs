import { spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { build } from './lib/build.mjs';
import { inProject, LaunchError } from './lib/project.mjs';
import { runStage, withPostgres } from './lib/stage.mjs';

/**
 * `npm run soak [-- --minutes 60] [--rate 50] [--log FILE]`: mixed load with faults against the built gateway at the
 * chart's default memory. Fails when memory has grown by more than 5 % since the first quarter, or a row is missing.
 * With --log it goes on by itself, in the background, and writes there.
 */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    rate: { type: 'string', default: '50' },
    log: { type: 'string' },
  },
});

if (values.log === undefined) {
  await runStage('scripts/soak.mjs', async (node) => {
    const [minutes, perSecond] = [Number(values.minutes), Number(values.rate)];
    if (!(minutes > 0 && perSecond > 0)) throw new LaunchError('--minutes and --rate are numbers above 0.');
    if (!(await build(node))) throw new LaunchError('The build failed; the compiler says why above.');
    return await withPostgres(async (folder, databaseUrl) => {
      process.env.TEST_DATABASE_URL = databaseUrl;
      const { soak } = await import('./soak/run.ts');
      return await soak({ minutes, perSecond, folder });
    });
  });
} else {
  const log = openSync(values.log, 'a');
  const args = [inProject('scripts', 'soak.mjs'), '--minutes', values.minutes, '--rate', values.rate];
  const child = spawn(process.execPath, args, { detached: true, stdio: ['ignore', log, log] });
  child.unref();
  console.log(`Process ${child.pid} writes to ${values.log}; its last line is the tally.`);
}
