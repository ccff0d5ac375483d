import { readFileSync } from 'node:fs';
import type { Reporter, TestCase } from 'vitest/node';
import { recordFault } from './scorecard.ts';
import { cellsOf } from './scorecard-page.ts';

/** Turns each test of a run into a row of the scorecard; without GW_SCORECARD_FILE it does nothing. */
export default class ScorecardReporter implements Reporter {
  onTestCaseResult(test: TestCase): void {
    if (process.env['GW_SCORECARD_FILE'] === undefined) return;
    const { state } = test.result();
    // A test that was skipped proves nothing; it is missing from the page, and that is told by a test.
    if (state !== 'passed' && state !== 'failed') return;
    const source = readFileSync(test.module.moduleId, 'utf8');
    const { fault, required } = cellsOf(test.fullName, test.name, source);
    const figure = (test.meta().figures ?? []).join('; ');
    recordFault({ fault, required, figure, passed: state === 'passed' });
  }
}
