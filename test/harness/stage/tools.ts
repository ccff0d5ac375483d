import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { TestRunner } from 'vitest';

/** The program's absolute path on PATH, or null. */
export function findTool(name: string): string | null {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // not in this folder
    }
  }
  return null;
}

/**
 * The path of an external program that a test cannot do without. When it is missing the running test (or the
 * tests of a `beforeEach`) is skipped; with GW_REQUIRE_TOOLS=1, as in CI, it fails instead.
 */
export function skipWithout(tool: string, reason: string): string {
  const path = findTool(tool);
  if (path !== null) return path;
  const message = `${tool} is not installed: ${reason}`;
  if (process.env['GW_REQUIRE_TOOLS'] === '1') throw new Error(message);
  const test = TestRunner.getCurrentTest();
  if (test === undefined) throw new Error(`skipWithout('${tool}') belongs into a test or a beforeEach.`);
  return test.context.skip(message);
}
