import { demoTables } from '../harness/observe/demo-world.ts';
import type { Run } from '../harness/observe/run-faults.ts';
import { runFaults } from '../harness/observe/run-faults.ts';
import type { World } from '../harness/observe/world.ts';
import { startWorld } from '../harness/observe/world.ts';

const RUN_SECONDS = 40;
const REQUESTS_PER_SECOND = 18;

/** Candidates keep their order, so that each fault is followed by one known fallback. */
const noCooldown = (failures: number) => demoTables(`cooldown: { failures: ${failures}, users: 1000 }`);

export interface ExercisedWorld extends Run {
  readonly world: World;
  /** Seconds since 1970. */
  readonly beganAt: number;
}

/** A world at rest after a run with faults, all of it scraped. */
export async function exerciseWorld(): Promise<ExercisedWorld> {
  const program = process.env['TEST_PROMETHEUS'];
  if (program === undefined) throw new Error('TEST_PROMETHEUS is not set: "npm run test:prometheus" does.');
  const world = await startWorld(program, noCooldown(1000));
  try {
    const beganAt = Date.now() / 1_000;
    const options = { seconds: RUN_SECONDS, requestsPerSecond: REQUESTS_PER_SECOND, outage: false };
    return { world, beganAt, ...(await runFaults(world, { ...options, newTables: noCooldown(999) })) };
  } catch (error) {
    await world.close();
    throw error;
  }
}
