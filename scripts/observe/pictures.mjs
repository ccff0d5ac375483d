import { build } from '../lib/build.mjs';
import { LaunchError } from '../lib/project.mjs';
import { findRedisServer } from '../lib/redis-binary.mjs';
import { makeRunFolder } from '../lib/run-folder.mjs';
import { runStage } from '../lib/stage.mjs';
import { findPrometheus } from './find-prometheus.mjs';

/** `node scripts/observe/pictures.mjs`: draws docs/pictures anew, from a run of some three minutes. */
await runStage('scripts/observe/pictures.mjs', async (node) => {
  const { prometheus } = await findPrometheus();
  const redis = await findRedisServer();
  process.env.TEST_REDIS_SERVER = redis.program;
  if (redis.libraries) process.env.TEST_REDIS_LIBRARIES = redis.libraries;
  if (!(await build(node))) throw new LaunchError('The build failed; the compiler says why above.');
  const folder = makeRunFolder();
  try {
    const { drawRun } = await import('./draw-run.ts');
    const files = await drawRun(prometheus);
    for (const file of files) console.log(file);
    return { passed: files.length, failed: 0, skipped: 0 };
  } finally {
    await folder.remove();
  }
});
