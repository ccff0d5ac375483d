import type { FaultRow } from './scorecard.ts';

/** One suite of docs/faults.md: its rows, and the command that makes them. */
export interface FaultSuite {
  readonly title: string;
  readonly command: string;
  readonly rows: readonly FaultRow[];
}

/** Where and when the run was made. */
export interface FaultRun {
  readonly date: string;
  readonly commit: string;
  readonly machine: string;
}

const heading = '## ';

/** Between the suite and the test in a full name. */
const separator = ' > ';

/**
 * A test's two first cells: the fault from the suites around it, or else from the subject of its file (the first sentence
 * of its first comment); the required behaviour from its own name.
 */
export function cellsOf(fullName: string, name: string, source: string): { fault: string; required: string } {
  const suites = fullName.slice(0, fullName.length - name.length);
  const fault = suites.endsWith(separator) ? suites.slice(0, -separator.length) : subjectOf(source);
  return { fault: fault.replaceAll(separator, ', '), required: name };
}

/** `/** Postgres fails in every way it knows: chat goes on. *\/` → `Postgres fails in every way it knows`. */
function subjectOf(source: string): string {
  const comment = /^\/\*\*\s*([\s\S]*?)\s*\*\//.exec(source)?.[1] ?? '';
  return comment.replaceAll(/\s*\n\s*\*?\s*/g, ' ').split(/[:.;]/)[0] ?? '';
}

/** A cell of a Markdown table. */
export function cell(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').replaceAll('<', '&lt;').trim();
}

/** The two cells by which the page knows a test. */
export function rowKey({ fault, required }: Pick<FaultRow, 'fault' | 'required'>): string {
  return `| ${cell(fault)} | ${cell(required)} |`;
}

/** The part of the page that one suite makes: when, where, and its rows. */
export function suiteSection(
  { date, commit, machine }: FaultRun,
  { title, command, rows }: FaultSuite,
): string {
  const passed = rows.filter((row) => row.passed).length;
  const lines = rows.map((row) => `${rowKey(row)} ${cell(row.figure)} | ${row.passed ? 'yes' : '**no**'} |`);
  return [
    `${heading}${title}`,
    '',
    `\`${command}\` on ${date} at commit ${commit}, on ${machine}: ${passed} of ${rows.length} passed.`,
    '',
    '| fault or attack | required behaviour | figure | passed |',
    '|---|---|---|---|',
    ...lines,
  ].join('\n');
}

/** The parts of a page as it stands, by their titles. */
export function sectionsOf(page: string): ReadonlyMap<string, string> {
  const [, ...parts] = page.split(new RegExp(`^${heading}`, 'm'));
  return new Map(parts.map((part) => [part.slice(0, part.indexOf('\n')), `${heading}${part.trimEnd()}`]));
}

/** The whole page. */
export function faultsPage(sections: readonly string[]): string {
  return `# Faults and attacks

Written by \`npm run faults\`, suite by suite: do not edit. Each row is a test that ran, against the built gateway as a
process and real servers; a figure is what that run measured on a machine that other programs shared. A bound is for one
replica on a machine of its own; the tests allow three times as much, and more where it was busy or stood still.

${sections.join('\n\n')}
`;
}
