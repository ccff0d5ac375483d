import { once } from 'node:events';
import { writeToFileBehind } from '../adapters/system/file-behind.ts';
import { escapeUnprintable } from '../core/json/unprintable.ts';
import { exitCodes } from './exit-codes.ts';

const stdoutDescriptor = 1;

/**
 * Ends the process, since stdout takes no more. A reader that has enough, as `head` has, is no failure; a disk that is
 * full is one, and whoever goes on with half an output must know.
 */
export function endWithStdout(error: NodeJS.ErrnoException): never {
  if (error.code === 'EPIPE') process.exit(exitCodes.done);
  process.stderr.write(`model-gateway: the output is not whole: ${error.message}\n`);
  process.exit(exitCodes.failed);
}

/** The one way of commands to stdout. Returns false when the stream wants no more before its `drain`. */
export function print(text: string): boolean {
  try {
    return writeToFileBehind(stdoutDescriptor, text) || process.stdout.write(text);
  } catch (error) {
    endWithStdout(error as NodeJS.ErrnoException);
  }
}

/** Resolves when the callback of an empty write is called: all before it has left then, or never will. */
function emptied(stream: NodeJS.WriteStream): Promise<Error | null> {
  return new Promise((resolve) => {
    stream.write('', (error) => resolve(stream.errored ?? error ?? null));
  });
}

/** Resolves when whoever reads stdout and stderr has all that was written: a pipe takes 64 KiB at a time. */
export async function allRead(): Promise<void> {
  const error = await emptied(process.stdout);
  // The stream tells its listeners later than this, and the process may have ended by then.
  if (error !== null) endWithStdout(error);
  await emptied(process.stderr);
}

/** For long outputs: whoever reads slowly holds the cursor back that they come from, not the memory. */
export async function writeAsRead(text: string): Promise<void> {
  if (text !== '' && !print(text)) await once(process.stdout, 'drain');
}

/** One document, on one line. */
export function printJson(value: unknown): void {
  print(`${escapeUnprintable(JSON.stringify(value))}\n`);
}

/** Rows under a heading, each column as wide as its widest text; nothing where there are none. */
export function textTable(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const shown = [heading, ...rows.map((row) => row.map(shownText))];
  const widths = heading.map((_, column) => Math.max(...shown.map((row) => row[column]?.length ?? 0)));
  const lines = shown.map((row) => row.map((text, column) => text.padEnd(widths[column] ?? 0)).join('  '));
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}

const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Text of a user's for a terminal: what would move the cursor, or turn the line around, is spelled out. */
export function shownText(text: string): string {
  return text.replace(unseen, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
