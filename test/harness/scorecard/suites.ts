import { readdirSync, readFileSync } from 'node:fs';
import { inProject } from '../stage/project.ts';
import type { FaultRow } from './scorecard.ts';

/** A part of docs/faults.md, and the stage that makes it. */
export interface Suite {
  readonly title: string;
  /** As a person types it. */
  readonly command: string;
  /** The stage of test/harness/stages. */
  readonly stage: string;
  readonly args?: readonly string[];
  /** It takes the rows of the suite above it whose fault begins so, and has no run of its own. */
  readonly prefix?: string;
}

export const suites: readonly Suite[] = [
  {
    title: 'Faults',
    command: 'npm test -- test/faults test/residency',
    stage: 'test',
    args: ['test/faults', 'test/residency', ...recordingFiles()],
  },
  {
    title: 'Classic faults of upstreams',
    command: 'npm run crash-test',
    stage: 'test',
    prefix: 'crash test, ',
  },
  { title: 'Kills and outages under load', command: 'npm run test:kills', stage: 'kills' },
  { title: 'Attacks', command: 'npm run test:attack', stage: 'attack' },
  { title: 'Generated requests', command: 'npm run test:schema', stage: 'schema' },
  // The shortest soak that judges memory.
  { title: 'Soak', command: 'npm run soak -- --minutes 5', stage: 'soak', args: ['--minutes', '5'] },
];

/** Test files elsewhere that record something for the scorecard. */
function recordingFiles(): string[] {
  return readdirSync(inProject('test'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts') && !/^(faults|harness)\//.test(file))
    .filter((file) => readFileSync(inProject('test', file), 'utf8').includes('recordFault('))
    .map((file) => `test/${file}`);
}

/** The rows that a suite's run made, by suite: those with a suite of their own stand there, without its prefix. */
export function splitRows(suite: Suite, rows: readonly FaultRow[]): { suite: Suite; rows: FaultRow[] }[] {
  const apart = suites
    .filter(({ stage, prefix }) => stage === suite.stage && prefix !== undefined)
    .map((one) => ({
      suite: one,
      rows: rows
        .filter(({ fault }) => fault.startsWith(one.prefix ?? ''))
        .map((row) => ({ ...row, fault: row.fault.slice(one.prefix?.length) })),
    }));
  const prefixes = apart.map(({ suite: { prefix = '' } }) => prefix);
  const own = rows.filter(({ fault }) => !prefixes.some((prefix) => fault.startsWith(prefix)));
  return [{ suite, rows: own }, ...apart].filter((part) => part.rows.length > 0);
}
