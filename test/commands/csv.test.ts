/** Lines of CSV: what users and vendors wrote is data for whoever opens the file, whatever it begins with. */
import { describe, expect, test } from 'vitest';
import type { CsvValue } from '../../src/commands/csv.ts';
import { csvLine } from '../../src/commands/csv.ts';

describe('a cell', () => {
  test.each<[CsvValue, string]>([
    ["=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"],
    ['+1+1', "'+1+1"],
    ["-2+cmd|' /C calc'!A0", "'-2+cmd|' /C calc'!A0"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\t=1', "'\t=1"],
    ['\r=1', '"\'\r=1"'],
    ['\n=1', '"\'\n=1"'],
    ['＝1', "'＝1"],
    ['＋1', "'＋1"],
    ['－1', "'－1"],
    ['＠x', "'＠x"],
    ['=1,"2"', '"\'=1,""2"""'],
    ['--', "'--"],
  ])('%j is no formula', (value, cell) => {
    expect(csvLine([value])).toBe(`${cell}\r\n`);
  });

  test.each<[CsvValue, string]>([
    [null, ''],
    [true, 'true'],
    [-1, '-1'],
    ['-0.000001', '-0.000001'],
    ['0.002510', '0.002510'],
    ['gpt-5', 'gpt-5'],
    ['a=b', 'a=b'],
    ['a,b', '"a,b"'],
  ])('%j stays what it is', (value, cell) => {
    expect(csvLine([value])).toBe(`${cell}\r\n`);
  });
});

test('a line ends as RFC 4180 has it', () => {
  expect(csvLine(['a', 1, null])).toBe('a,1,\r\n');
});
