/**
 * Alerts and recording rules, judged by `promtool test rules`. The cases are the YAML files beside this one. A case of
 * an alert is named `<alert> fires: ...`, `<alert> silent: ...` or `<alert> first event: ...`; the last kind begins with
 * nothing (a counter at 0, a new pod) and brings the first thing that happens. Rules that are wrong on purpose show that
 * the cases can fail.
 */
import { basename } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Case, CaseFile, Rule } from './promtool.ts';
import { judge, promtool, readCaseFiles, readGroups, ruleFiles } from './promtool.ts';

const kinds = ['fires', 'silent', 'first event'] as const;
type Kind = (typeof kinds)[number];

const paths = await ruleFiles();
const groups = await readGroups();
const files = await readCaseFiles();
const rules = groups.flatMap((group) => group.rules);
const records = rules.flatMap(({ record }) => record ?? []);
const alerts = rules.flatMap((rule) => (rule.alert === undefined ? [] : [{ ...rule, alert: rule.alert }]));
const recordingGroups = groups.filter((group) => group.rules.every(({ record }) => record !== undefined));
const recordingFile = files.find(({ name }) => name === 'recording.yaml') as CaseFile;
const alertFiles = files.filter((file) => file !== recordingFile);

function kindOf({ name }: Case): readonly [alert: string, kind: Kind] | null {
  const match = /^(\w+) (fires|silent|first event): \S/.exec(name);
  return match === null ? null : [match[1] as string, match[2] as Kind];
}

/** The cases of an alert, and the file they are in. */
function casesOf(alert: string): readonly [CaseFile, readonly Case[]] {
  const isOurs = (each: Case) => kindOf(each)?.[0] === alert;
  const file = alertFiles.find(({ tests }) => tests.some(isOurs));
  if (file === undefined) throw new Error(`There is no case of ${alert}.`);
  return [file, file.tests.filter(isOurs)];
}

const namesOf = (cases: readonly Case[]) => cases.map(({ name }) => name);

/** The names of those of these cases that fail with this rule in place of the alert. */
async function failures(rule: Rule, file: CaseFile, tests: readonly Case[]): Promise<readonly string[]> {
  const under = rule.expr.includes('gw:') ? recordingGroups : [];
  const failed: string[] = [];
  for (const each of tests) {
    const { accepted, output } = await judge([...under, { name: 'wrong', rules: [rule] }], file, [each]);
    // A file that promtool cannot read would fail too.
    if (!accepted && output.includes('exp:')) failed.push(each.name);
  }
  return failed;
}

/** Each threshold but 0 and what is compared by ==, times `factor`. */
const scaled = (rule: Rule, factor: number): Rule => ({
  ...rule,
  expr: rule.expr.replace(/([<>]=?) (?=0\.\d|[1-9])/g, `$1 ${factor} * `),
});

test.each(paths.map((path) => [basename(path), path] as const))(
  'promtool accepts %s',
  async (_name, path) => {
    const { accepted, output } = await promtool('check', 'rules', path);
    expect(accepted, output).toBe(true);
  },
);

describe('the cases hold', () => {
  test.each(files)('$name', async ({ path }) => {
    const { accepted, output } = await promtool('test', 'rules', path);
    expect(accepted, output).toBe(true);
  });
});

describe('the cases are complete', () => {
  test.each(alerts)('$alert fires, is silent, and sees its first event', ({ alert }) => {
    const cases = alertFiles
      .flatMap(({ tests }) => tests.map(kindOf))
      .filter((found) => found?.[0] === alert);
    expect(new Set(cases.map((found) => found?.[1]))).toEqual(new Set(kinds));
  });

  test('every case is of a kind, and of an alert that exists', () => {
    const names = new Set(alerts.map(({ alert }) => alert));
    const strays = alertFiles
      .flatMap(({ tests }) => tests)
      .filter((each) => !names.has(kindOf(each)?.[0] ?? ''));
    expect(namesOf(strays)).toEqual([]);
  });

  test.each(records)('%s is asked for', (record) => {
    const asked = recordingFile.tests.flatMap((each) => each.promql_expr_test ?? []);
    expect(asked.some(({ expr }) => expr.includes(record))).toBe(true);
  });
});

describe('the cases notice', () => {
  test.each(alerts)('$alert firing always', async (rule) => {
    const [file, cases] = casesOf(rule.alert);
    const silent = cases.filter((each) => kindOf(each)?.[1] === 'silent');
    expect(await failures({ ...rule, expr: 'vector(1)' }, file, silent)).toEqual(namesOf(silent));
  });

  test.each(alerts)('$alert firing never', async (rule) => {
    const [file, cases] = casesOf(rule.alert);
    const loud = cases.filter((each) => kindOf(each)?.[1] !== 'silent');
    expect(await failures({ ...rule, expr: 'vector(0) > 1' }, file, loud)).toEqual(namesOf(loud));
  });

  test.each(alerts.filter((rule) => rule.for !== undefined))('$alert firing at once', async (rule) => {
    const [file, cases] = casesOf(rule.alert);
    expect(await failures({ ...rule, for: '0s' }, file, cases)).not.toEqual([]);
  });

  const limited = alerts.filter((rule) => scaled(rule, 2).expr !== rule.expr);
  test.each(limited)('$alert with twice its limit, or half', async (rule) => {
    const [file, cases] = casesOf(rule.alert);
    for (const factor of [2, 0.5])
      expect(await failures(scaled(rule, factor), file, cases), `times ${factor}`).not.toEqual([]);
  });

  test.each(records)('%s being wrong', async (record) => {
    const wrong = recordingGroups.map((group) => ({
      ...group,
      rules: group.rules.map((rule) => (rule.record === record ? { ...rule, expr: 'vector(0.5)' } : rule)),
    }));
    const { output } = await judge(wrong, recordingFile, recordingFile.tests);
    expect(output).toContain('exp:');
  });
});
