import { createReadStream } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';

/** A file of keys or evidence that cannot be read or written; the message names it. */
export class EvidenceFileError extends Error {
  /** There is no such file or folder. */
  readonly isMissing: boolean;

  constructor(doing: string, path: string, error: unknown) {
    const { code } = error as NodeJS.ErrnoException;
    super(`cannot ${doing} ${path} (${code})`);
    this.isMissing = code === 'ENOENT';
  }
}

/** Of a whole file; `-`: what comes on stdin. */
export async function readText(path: string): Promise<string> {
  try {
    return await (path === '-' ? text(process.stdin) : readFile(path, 'utf8'));
  } catch (error) {
    throw new EvidenceFileError('read', path, error);
  }
}

/** A new file that its owner alone can read. */
export async function writeSecret(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    throw new EvidenceFileError('write', path, error);
  }
}

/** A file's bytes, piece by piece. */
export async function* readPieces(path: string): AsyncGenerator<Buffer> {
  try {
    for await (const piece of createReadStream(path)) yield piece as Buffer;
  } catch (error) {
    throw new EvidenceFileError('read', path, error);
  }
}
