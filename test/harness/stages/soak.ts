import { spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { soak } from '../soak/run.ts';
import { mustBuild } from '../stage/build.ts';
import { buildMeasured } from '../stage/measured.ts';
import { StageError } from '../stage/project.ts';
import { findRedisServer } from '../stage/redis-server.ts';
import { oneSkip, runStage, skipOrThrow, withRunFolder } from '../stage/run-stage.ts';

/**
 * `npm run soak [-- --minutes 60] [--rate 50] [--log FILE]`: mixed load with faults against the built gateway at the
 * chart's default memory, while its tables are edited, keys change, and Postgres and Redis fail over. Fails when memory has
 * grown by more than 5 % since the first quarter, the p99 has too, a row is missing or there twice, or a request ended
 * otherwise than it must. Without Redis' program the run is skipped, or fails with GW_REQUIRE_TOOLS=1. With --log it goes on by itself, in the background, and writes there.
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
    const programs = await findRedisServer().catch(skipOrThrow);
    if (programs === null) return oneSkip;
    Object.assign(process.env, programs);
    await mustBuild();
    await buildMeasured();
    return await withRunFolder((folder) => soak({ minutes, perSecond, folder }));
  });
} else {
  const log = openSync(values.log, 'a');
  const args = [import.meta.filename, '--minutes', values.minutes, '--rate', values.rate];
  const child = spawn(process.execPath, args, { detached: true, stdio: ['ignore', log, log] });
  child.unref();
  console.log(`Process ${child.pid} writes to ${values.log}; its last line is the tally.`);
}
