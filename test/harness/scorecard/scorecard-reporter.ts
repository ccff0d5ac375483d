import { readFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';
import { recordFault } from './scorecard.ts';
import { cellsOf } from './scorecard-page.ts';

/** Turns each test of a run into a row of the scorecard; without GW_SCORECARD_FILE it does nothing. */
export default class ScorecardReporter implements Reporter {
  onTestModuleEnd(module: TestModule): void {
    if (process.env['GW_SCORECARD_FILE'] === undefined) return;
    const source = readFileSync(module.moduleId, 'utf8');
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      const { fault, required } = cellsOf(test.fullName, test.name, source);
      const figures = test.meta().figures ?? [];
      // Skipped, or its suite broke down before: it proves nothing.
      const figure = state === 'passed' || state === 'failed' ? figures.join('; ') : 'did not run';
      recordFault({ fault, required, figure, passed: state === 'passed' });
    }
  }
}
