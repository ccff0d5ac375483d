import { measureParts } from '../bench/micro.ts';
import { findK6 } from '../load/k6.ts';
import { runScripts } from '../load/run-scripts.ts';
import { withGateway } from '../load/world.ts';
import { mustBuild } from '../stage/build.ts';
import { isStopped } from '../stage/children.ts';
import { StageError } from '../stage/project.ts';
import { oneSkip, runStage, skipOrThrow, withPostgres } from '../stage/run-stage.ts';

/**
 * `npm run test:load [-- script ...]`: the k6 scripts of load-tests/, each for a few seconds against the built gateway
 * with a vendor of its own, all on loopback; without names the micro-benches too, once each. Without k6, and Go to build
 * it, the run is skipped, or fails with GW_REQUIRE_TOOLS=1.
 */
await runStage(async () => {
  const k6 = await findK6().catch(skipOrThrow);
  if (k6 === null) return oneSkip;
  await mustBuild();
  const names = process.argv.slice(2);
  return withPostgres(async (folder, databaseUrl) => {
    const tally = await withGateway(databaseUrl, (urls) => runScripts(k6, urls, names));
    if (names.length > 0 || isStopped()) return tally;
    if (await microBenchesRun(folder)) tally.passed += 1;
    else tally.failed += 1;
    return tally;
  });
});

/** Each once: what nobody runs would rot. */
async function microBenchesRun(folder: string): Promise<boolean> {
  try {
    const parts = await measureParts(folder, { smoke: true });
    console.log(`\nok: ${parts.length} micro-benches run`);
    return true;
  } catch (error) {
    if (!(error instanceof StageError)) throw error;
    console.log(`\nFAILED: ${error.message}`);
    return false;
  }
}
