import { writeFileSync } from 'node:fs';
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/** Where `npm test` wants the numbers; without it they are printed. */
const tallyFile = process.env['GW_TEST_TALLY_FILE'];

interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

/** Ends the run with "N passed, N failed, N skipped". Errors outside of tests count as failures. */
export default class TallyReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const tally: Tally = { passed: 0, failed: errors.length, skipped: 0 };
    for (const module of modules) addModule(tally, module);
    if (tallyFile !== undefined) writeFileSync(tallyFile, JSON.stringify(tally));
    else process.stdout.write(`${tally.passed} passed, ${tally.failed} failed, ${tally.skipped} skipped\n`);
  }
}

/** A file that cannot be loaded and a suite whose hook fails have no failed test of their own. */
function addModule(tally: Tally, module: TestModule): void {
  tally.failed += module.errors().length;
  for (const suite of module.children.allSuites()) tally.failed += suite.errors().length;
  for (const test of module.children.allTests()) {
    const { state } = test.result();
    // `pending`: the run ended before the test did.
    if (state === 'pending') tally.failed += 1;
    else tally[state] += 1;
  }
}
