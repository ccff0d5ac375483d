import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import type { FaultRow } from '../scorecard/scorecard.ts';
import type { FaultRun } from '../scorecard/scorecard-page.ts';
import { faultsPage, sectionsOf, suiteSection } from '../scorecard/scorecard-page.ts';
import type { Suite } from '../scorecard/suites.ts';
import { splitRows, suites } from '../scorecard/suites.ts';
import { run } from '../stage/children.ts';
import { inProject, root } from '../stage/project.ts';
import { runStage, withRunFolder } from '../stage/run-stage.ts';

/**
 * `npm run faults [-- TITLE...]`: runs the suites of faults and attacks (all, an hour or so; or those of these titles) and
 * writes what they say into docs/faults.md. The other suites' parts of the page stay as they are.
 */
await runStage(async () => {
  const titles = process.argv.slice(2);
  const wanted = suites.filter(({ title, prefix }) => {
    return prefix === undefined && (titles.length === 0 || titles.includes(title));
  });
  return await withRunFolder(async (folder) => {
    const all: FaultRow[] = [];
    let broken = 0;
    for (const suite of wanted) {
      const { rows, code, madeBy } = await runSuite(suite, join(folder, `${suite.title}.jsonl`));
      // A suite that broke off says so by its exit code alone.
      if (code !== 0 && rows.every(({ passed }) => passed)) broken += 1;
      all.push(...rows);
      // After each suite, so that a run that is broken off leaves what it found.
      writeParts(
        splitRows(suite, rows).map((part) => {
          const { title, command } = part.suite;
          return [title, suiteSection(madeBy, { title, command, rows: part.rows })];
        }),
      );
    }
    const failed = all.filter(({ passed }) => !passed).length;
    console.log(`docs/faults.md: ${all.length} rows`);
    const failures = failed + broken + (all.length === 0 ? 1 : 0);
    return { passed: all.length - failed, failed: failures, skipped: 0 };
  });
});

async function runSuite(
  { stage, args = [] }: Suite,
  file: string,
): Promise<{ rows: FaultRow[]; code: number | null; madeBy: FaultRun }> {
  const madeBy = whereAndWhen();
  const env = { ...process.env, GW_SCORECARD_FILE: file };
  const entry = inProject('test', 'harness', 'stages', `${stage}.ts`);
  const { code } = await run(process.execPath, [entry, ...args], { cwd: root, env });
  return { rows: readRows(file), code, madeBy };
}

/** In one order, whatever order they ended in. */
function readRows(file: string): FaultRow[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  const place = ({ fault, required }: FaultRow) => `${fault}\n${required}`;
  return lines
    .map((line) => JSON.parse(line) as FaultRow)
    .sort((one, other) => (place(one) < place(other) ? -1 : 1));
}

function writeParts(parts: readonly (readonly [title: string, section: string])[]): void {
  const page = inProject('docs', 'faults.md');
  const sections = new Map([...sectionsOf(readFileSync(page, 'utf8')), ...parts]);
  writeFileSync(page, faultsPage(suites.flatMap(({ title }) => sections.get(title) ?? [])));
}

/** With the load average: what else the machine was doing. */
function whereAndWhen(): FaultRun {
  const head = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' });
  const gibibytes = Math.round(totalmem() / 1024 ** 3);
  const load = loadavg()[0]?.toFixed(1);
  const machine = `a machine with ${cpus().length} cores and ${gibibytes} GiB, Node ${process.versions.node}, load average ${load} before the run`;
  return { date: new Date().toISOString().slice(0, 10), commit: head.trim(), machine };
}
