import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { handleStopSignals } from '../stage/children.ts';
import { inProject, StageError } from '../stage/project.ts';

/** A committed file that follows from others. */
export interface MadeFile {
  /** Relative to the checkout. */
  readonly path: string;
  /** What it should hold. */
  readonly text: string;
}

/** A document with what stands between its marks for `name` made anew. */
export function withMade(path: string, text: string, name: string, made: string): string {
  const begin = `<!-- ${name}: made by npm run generate -->`;
  const end = `<!-- end of ${name} -->`;
  const [before = '', rest] = text.split(begin);
  const after = rest?.split(end)[1];
  if (after === undefined) throw new Error(`${path} lacks ${begin} … ${end}.`);
  return `${before}${begin}\n${made}\n${end}${after}`;
}

/** Rows of cells under a header, as Markdown. */
export function markdownTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    cells.map((cell) => (cell === '' ? '| ' : `| ${cell} `)).join('');
  return [`${line(header)}|`, `${'|---'.repeat(header.length)}|`, ...rows.map((row) => `${line(row)}|`)].join(
    '\n',
  );
}

/** Those that hold something else, or are not there. */
export function staleFiles(files: readonly MadeFile[]): MadeFile[] {
  return files.filter(({ path, text }) => textOf(path) !== text);
}

/**
 * The whole of `npm run <command>`: writes the stale files. With `--check` nothing is written, the stale ones are named
 * and the exit code is 1 where there are any.
 */
export async function writeStale(
  command: string,
  make: () => readonly MadeFile[] | Promise<readonly MadeFile[]>,
): Promise<void> {
  handleStopSignals();
  try {
    const stale = staleFiles(await make());
    if (!process.argv.includes('--check')) return stale.forEach(write);
    for (const { path } of stale) console.error(`${path} is out of date: npm run ${command}`);
    process.exitCode = stale.length === 0 ? 0 : 1;
  } catch (error) {
    console.error(error instanceof StageError ? error.message : error);
    process.exitCode = 1;
  }
}

function textOf(path: string): string | null {
  try {
    return readFileSync(inProject(path), 'utf8');
  } catch {
    return null;
  }
}

function write({ path, text }: MadeFile): void {
  mkdirSync(inProject(path, '..'), { recursive: true });
  writeFileSync(inProject(path), text);
  console.log(`wrote ${path}`);
}
