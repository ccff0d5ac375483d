import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { recordFault } from './scorecard.ts';

const folder = mkdtempSync(join(tmpdir(), 'scorecard-'));
const file = join(folder, 'rows.jsonl');
const row = { fault: 'Postgres dies', required: 'no row is lost', figure: '0 of 900 lost', passed: true };

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(file, { force: true });
});

test('appends one line per row to the file that the run names', () => {
  vi.stubEnv('GW_SCORECARD_FILE', file);
  recordFault(row);
  recordFault({ ...row, figure: 'two\nlines', passed: false });
  const rows = readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
  expect(rows).toEqual([row, { ...row, figure: 'two\nlines', passed: false }]);
});

test.each([undefined, ''])('writes nothing where no file is named (%s)', (value) => {
  vi.stubEnv('GW_SCORECARD_FILE', value);
  recordFault(row);
  expect(existsSync(file)).toBe(false);
});
