import { createReadStream } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';

/** A file of keys or evidence that cannot be read or written; the message names it. */
export class EvidenceFileError extends Error {}

const failed = (doing: string, path: string, error: unknown): EvidenceFileError =>
  new EvidenceFileError(`cannot ${doing} ${path} (${(error as NodeJS.ErrnoException).code})`);

/** Of a whole file; `-`: what comes on stdin. */
export async function readText(path: string): Promise<string> {
  try {
    return await (path === '-' ? text(process.stdin) : readFile(path, 'utf8'));
  } catch (error) {
    throw failed('read', path, error);
  }
}

/** A new file that its owner alone can read. */
export async function writeSecret(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    throw failed('write', path, error);
  }
}

/** A file's bytes, piece by piece. */
export async function* readPieces(path: string): AsyncGenerator<Buffer> {
  try {
    for await (const piece of createReadStream(path)) yield piece as Buffer;
  } catch (error) {
    throw failed('read', path, error);
  }
}
