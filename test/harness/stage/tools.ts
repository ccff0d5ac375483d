import { TestRunner } from 'vitest';
import { findProgram } from './programs.ts';

/**
 * The path of an external program that a test cannot do without. When it is missing the running test (or the
 * tests of a `beforeEach`) is skipped; with GW_REQUIRE_TOOLS=1, as in CI, it fails instead.
 */
export function skipWithout(tool: string, reason: string): string {
  const path = findProgram(tool);
  if (path !== null) return path;
  const message = `${tool} is not installed: ${reason}`;
  if (process.env['GW_REQUIRE_TOOLS'] === '1') throw new Error(message);
  const test = TestRunner.getCurrentTest();
  if (test === undefined) throw new Error(`skipWithout('${tool}') belongs into a test or a beforeEach.`);
  return test.context.skip(message);
}
