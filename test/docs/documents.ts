import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');

export function readDocument(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** Whether a file or folder exists; `path` is relative to the repository. */
export function exists(path: string): boolean {
  return existsSync(join(root, path));
}

/** All files below a folder that end so, relative to the repository. */
export function filesBelow(folder: string, ending: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith(ending))
    .map((path) => join(folder, path));
}

/** Names of the folders directly below one, relative to the repository. */
export function foldersOf(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
}

/** The documents of the repository itself: the folders that hold any are few and named. */
export function documents(): string[] {
  const top = readdirSync(root).filter((name) => name.endsWith('.md'));
  return [...top, ...filesBelow('docs', '.md'), ...filesBelow('charts', '.md')];
}

/** The text without fenced blocks: what looks like a link there is none. */
export function prose(text: string): string {
  return text.replace(/^```[\s\S]*?^```/gm, '');
}

/** Texts between single backticks, outside of fenced blocks. */
export function codeSpans(text: string): string[] {
  return [...prose(text).matchAll(/`([^`\n]+)`/g)].map((match) => match[1] ?? '');
}

/** Rows of the first table whose header begins with these cells, without the header, cells trimmed. */
export function tableRows(text: string, ...header: string[]): string[][] {
  const lines = text.split('\n');
  const start = lines.findIndex((line) => line.startsWith(`| ${header.join(' | ')} |`));
  if (start < 0) throw new Error(`no table | ${header.join(' | ')} |`);
  const rest = lines.slice(start + 2);
  const end = rest.findIndex((line) => !line.startsWith('|'));
  return rest.slice(0, end < 0 ? undefined : end).map((line) => {
    const cells = line.split(/(?<!\\)\|/).slice(1, -1);
    return cells.map((cell) => cell.trim());
  });
}
