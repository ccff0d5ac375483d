import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';

/** The rules of the chart, the cases beside this file, and promtool, which judges them. */

const casesFolder = import.meta.dirname;
const rulesFolder = join(casesFolder, '../../../charts/model-gateway/rules');
/** Against hanging only, below the limit of a test: the longest file takes seconds, on a machine with others a minute. */
const runLimitMs = 240_000;

export interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly for?: string;
}

interface Group {
  readonly name: string;
  readonly rules: readonly Rule[];
}

/** One entry of promtool's `tests`, as far as we look into it. */
export interface Case {
  readonly name: string;
  readonly promql_expr_test?: readonly { readonly expr: string }[];
}

/** promtool's own format. */
export interface CaseFile {
  readonly name: string;
  readonly path: string;
  readonly evaluation_interval: string;
  readonly tests: readonly Case[];
}

export interface Verdict {
  readonly accepted: boolean;
  readonly output: string;
}

async function yamlIn(folder: string): Promise<readonly string[]> {
  return (await readdir(folder)).filter((name) => name.endsWith('.yaml')).sort();
}

export async function ruleFiles(): Promise<readonly string[]> {
  return (await yamlIn(rulesFolder)).map((name) => join(rulesFolder, name));
}

export async function readGroups(): Promise<readonly Group[]> {
  const texts = await Promise.all((await ruleFiles()).map((path) => readFile(path, 'utf8')));
  return texts.flatMap((text) => (parse(text) as { groups: Group[] }).groups);
}

export async function readCaseFiles(): Promise<readonly CaseFile[]> {
  const names = await yamlIn(casesFolder);
  return await Promise.all(
    names.map(async (name) => {
      const path = join(casesFolder, name);
      return { ...(parse(await readFile(path, 'utf8')) as CaseFile), name, path };
    }),
  );
}

/** What promtool says. The program is named by TEST_PROMTOOL. */
export async function promtool(...args: readonly string[]): Promise<Verdict> {
  const program = process.env['TEST_PROMTOOL'];
  if (program === undefined) throw new Error('TEST_PROMTOOL must name the program: npm run test:prometheus');
  return await new Promise((resolve) => {
    execFile(program, args, { timeout: runLimitMs }, (error, stdout, stderr) => {
      resolve({ accepted: error === null, output: `${stdout}${stderr}${error?.signal ?? ''}` });
    });
  });
}

/** Runs cases of one file against these groups instead of those of the chart. */
export async function judge(
  groups: readonly Group[],
  file: CaseFile,
  tests: readonly Case[],
): Promise<Verdict> {
  const folder = await mkdtemp(join(tmpdir(), 'gw-alerts-'));
  try {
    const { evaluation_interval } = file;
    const order = groups.map(({ name }) => name);
    const cases = { rule_files: ['rules.yaml'], group_eval_order: order, evaluation_interval, tests };
    await writeFile(join(folder, 'rules.yaml'), stringify({ groups }));
    await writeFile(join(folder, 'cases.yaml'), stringify(cases));
    return await promtool('test', 'rules', join(folder, 'cases.yaml'));
  } finally {
    await rm(folder, { recursive: true });
  }
}
