import { appendFileSync, writeFileSync } from 'node:fs';
import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node';

/** Where `npm test` wants the numbers; without it they are printed. */
const tallyFile = process.env['GW_TEST_TALLY_FILE'];

/** Where `.ci/run` collects, over all its stages, what failed and what passed only when it was tried again. */
const remarksFile = process.env['GW_TEST_REMARKS_FILE'];

interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

/**
 * Ends the run with "N passed, N failed, N skipped". Errors outside of tests count as failures. A test that passed only
 * when it was tried again (`--retry`) is named: it is no failure, and somebody should look at it.
 */
export default class TallyReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const tally: Tally = { passed: 0, failed: errors.length, skipped: 0 };
    for (const module of modules) addModule(tally, module);
    const remarks = [...errors.map(errorRemark), ...modules.flatMap(remarksOf)];
    for (const remark of remarks) process.stdout.write(`${remark}\n`);
    if (remarksFile !== undefined)
      appendFileSync(remarksFile, remarks.map((remark) => `${remark}\n`).join(''));
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

function remarksOf(module: TestModule): string[] {
  const broken = [...module.errors(), ...[...module.children.allSuites()].flatMap((suite) => suite.errors())];
  const tests = [...module.children.allTests()].map(testRemark).filter((remark) => remark !== null);
  return [...broken.map((error) => `failed: ${module.relativeModuleId}: ${firstLine(error)}`), ...tests];
}

function testRemark(test: TestCase): string | null {
  const name = `${test.module.relativeModuleId} > ${test.fullName}`;
  const { state, errors } = test.result();
  if (state === 'failed' || state === 'pending') return `failed: ${name}: ${firstLine(errors?.[0])}`;
  return test.diagnostic()?.flaky === true ? `passed when it was tried again: ${name}` : null;
}

function errorRemark(error: SerializedError): string {
  return `failed: outside of any test: ${firstLine(error)}`;
}

function firstLine(error: { message?: string } | undefined): string {
  return (error?.message ?? 'it did not come to an end').split('\n', 1)[0] ?? '';
}
