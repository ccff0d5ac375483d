import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { run } from './lib/children.mjs';
import { inProject, LaunchError, root } from './lib/project.mjs';
import { makeRunFolder } from './lib/run-folder.mjs';
import { runStage } from './lib/stage.mjs';

/**
 * `npm run faults [-- TITLE...]`: runs the suites of faults and attacks (all, an hour or so; or those of these titles) and
 * writes what they say into docs/faults.md. The other suites' parts of the page stay as they are.
 */

/**
 * `npm test` on the folders of faults and of the residency model, and on the files elsewhere that tell the scorecard something; then the stages. A suite
 * with a `prefix` takes the rows of the one above whose fault begins so.
 */
const suites = [
  {
    title: 'Faults',
    command: 'npm test -- test/faults test/residency',
    script: 'test.mjs',
    args: ['test/faults', 'test/residency', ...tellingFiles()],
  },
  { title: 'Classic faults of upstreams', command: 'npm run crash-test', prefix: 'crash test, ' },
  { title: 'Kills and outages under load', command: 'npm run test:kills', stage: 'test:kills' },
  { title: 'Attacks', command: 'npm run test:attack', stage: 'test:attack' },
  { title: 'Generated requests', command: 'npm run test:schema', stage: 'test:schema' },
  // The shortest soak that judges memory.
  {
    title: 'Soak',
    command: 'npm run soak -- --minutes 5',
    stage: 'soak',
    args: ['--minutes', '5'],
  },
];

const { scripts } = JSON.parse(readFileSync(inProject('package.json'), 'utf8'));

/** The file below scripts/ that a stage of package.json runs. Throws LaunchError for a stage that is none. */
function scriptOf(stage) {
  const file = /scripts\/(\S+)$/.exec(scripts[stage] ?? '')?.[1];
  if (file === undefined) throw new LaunchError(`package.json has no stage ${stage}.`);
  return file;
}

function tellingFiles() {
  const files = readdirSync(inProject('test'), { recursive: true }).filter((file) =>
    file.endsWith('.test.ts'),
  );
  return files
    .filter((file) => !/^(faults|support)\//.test(file))
    .filter((file) => readFileSync(inProject('test', file), 'utf8').includes('recordFault('))
    .map((file) => `test/${file}`);
}

/** Those asked for by title; all without one. */
function wantedSuites() {
  const titles = process.argv.slice(2);
  return suites.filter(({ title }) => titles.length === 0 || titles.includes(title));
}

await runStage('scripts/faults.mjs', async (node) => {
  const { faultsPage, sectionsOf, suiteSection } = await import('../test/support/scorecard-page.ts');
  const page = inProject('docs', 'faults.md');
  // After each suite, so that a run that is broken off leaves what it found.
  const writePage = (parts) => {
    const sections = new Map([...sectionsOf(readFileSync(page, 'utf8')), ...parts]);
    const inOrder = suites.flatMap(({ title }) => sections.get(title) ?? []);
    writeFileSync(page, faultsPage(inOrder));
  };
  const folder = makeRunFolder();
  const all = [];
  let broken = 0;
  try {
    for (const suite of wantedSuites().filter(({ prefix }) => prefix === undefined)) {
      const entry = suite.script ?? scriptOf(suite.stage);
      const file = join(folder.path, `${suites.indexOf(suite)}.jsonl`);
      const env = { ...process.env, GW_SCORECARD_FILE: file };
      const madeAt = whereAndWhen();
      const args = [inProject('scripts', ...entry.split('/')), ...(suite.args ?? [])];
      const { code } = await run(node, args, { cwd: root, env });
      const rows = readRows(file);
      // A suite that broke off says so by its exit code alone.
      if (code !== 0 && rows.every(({ passed }) => passed)) broken += 1;
      all.push(...rows);
      const parts = split(suite, rows).filter((part) => part.rows.length > 0);
      if (parts.length > 0) writePage(parts.map((part) => [part.title, suiteSection(madeAt, part)]));
    }
  } finally {
    await folder.remove();
  }
  const failed = all.filter(({ passed }) => !passed).length;
  console.log(`docs/faults.md: ${all.length} rows`);
  return { passed: all.length - failed, failed: failed + broken + (all.length === 0 ? 1 : 0), skipped: 0 };
});

/** In one order, whatever order they ended in. */
function readRows(file) {
  if (!existsSync(file)) return [];
  const rows = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const place = ({ fault, required }) => `${fault}\n${required}`;
  return rows.sort((a, b) => (place(a) < place(b) ? -1 : 1));
}

/** The rows of a suite, without those that have a suite of their own. */
function split(suite, rows) {
  const apart = suites.filter(
    ({ prefix }) => prefix !== undefined && rows.some((row) => row.fault.startsWith(prefix)),
  );
  const moved = apart.map((one) => ({
    ...one,
    rows: rows
      .filter(({ fault }) => fault.startsWith(one.prefix))
      .map((row) => ({ ...row, fault: row.fault.slice(one.prefix.length) })),
  }));
  const own = rows.filter(({ fault }) => !apart.some(({ prefix }) => fault.startsWith(prefix)));
  return [{ ...suite, rows: own }, ...moved];
}

/** With the load average: what else the machine was doing. */
function whereAndWhen() {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
    cwd: root,
    encoding: 'utf8',
  }).trim();
  const gibibytes = Math.round(totalmem() / 1024 ** 3);
  const machine = `a machine with ${cpus().length} cores and ${gibibytes} GiB, Node ${process.versions.node}, load average ${loadavg()[0].toFixed(1)} before the run`;
  return { date: new Date().toISOString().slice(0, 10), commit, machine };
}
