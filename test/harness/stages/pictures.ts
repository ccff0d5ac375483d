import { drawRun } from '../observe/draw-run.ts';
import { mustBuild } from '../stage/build.ts';
import { findPrometheus } from '../stage/prometheus-programs.ts';
import { findRedisServer } from '../stage/redis-server.ts';
import { runStage, withRunFolder } from '../stage/run-stage.ts';

/** `npm run pictures`: draws docs/pictures anew, from a run of some three minutes. */
await runStage(async () => {
  const { prometheus } = await findPrometheus();
  Object.assign(process.env, await findRedisServer());
  await mustBuild();
  return await withRunFolder(async () => {
    const files = await drawRun(prometheus);
    for (const file of files) console.log(file);
    return { passed: files.length, failed: 0, skipped: 0 };
  });
});
