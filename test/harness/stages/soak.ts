import { spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { soak } from '../soak/run.ts';
import { mustBuild } from '../stage/build.ts';
import { buildMeasured } from '../stage/measured.ts';
import { StageError } from '../stage/project.ts';
import { runStage, withPostgres } from '../stage/run-stage.ts';

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
  await runStage(async () => {
    const [minutes, perSecond] = [Number(values.minutes), Number(values.rate)];
    if (!(minutes > 0 && perSecond > 0)) throw new StageError('--minutes and --rate are numbers above 0.');
    await mustBuild();
    await buildMeasured();
    return await withPostgres(async (folder, databaseUrl) => {
      process.env['TEST_DATABASE_URL'] = databaseUrl;
      return await soak({ minutes, perSecond, folder });
    });
  });
} else {
  const log = openSync(values.log, 'a');
  const args = [import.meta.filename, '--minutes', values.minutes, '--rate', values.rate];
  const child = spawn(process.execPath, args, { detached: true, stdio: ['ignore', log, log] });
  child.unref();
  console.log(`Process ${child.pid} writes to ${values.log}; its last line is the tally.`);
}
