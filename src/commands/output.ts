import { once } from 'node:events';
import { exitCodes } from './exit-codes.ts';

/** Resolves when whoever reads stdout and stderr has all that was written: a pipe takes 64 KiB at a time. */
export async function allRead(): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) {
    await new Promise<void>((resolve) => {
      stream.write('', () => resolve());
    });
  }
}

/** For long outputs: whoever reads slowly holds the cursor back that they come from, not the memory. */
export async function writeAsRead(text: string): Promise<void> {
  if (text !== '' && !process.stdout.write(text)) await once(process.stdout, 'drain');
}

/** One document, on one line. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** Rows under a heading, each column as wide as its widest text; nothing where there are none. */
export function textTable(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const shown = [heading, ...rows.map((row) => row.map(shownText))];
  const widths = heading.map((_, column) => Math.max(...shown.map((row) => row[column]?.length ?? 0)));
  const lines = shown.map((row) => row.map((text, column) => text.padEnd(widths[column] ?? 0)).join('  '));
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}

/** A reader that has enough, as `head` has, is no failure. */
export function endWithReader(): void {
  process.stdout.once('error', () => process.exit(exitCodes.done));
}

const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Text of a user's for a terminal: what would move the cursor, or turn the line around, is spelled out. */
export function shownText(text: string): string {
  return text.replace(unseen, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
