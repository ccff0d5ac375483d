import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';

/** Beside this file in `src` and in `dist`. */
const shipped = new URL('./migrations/', import.meta.url);
const fileName = /^(\d{4})-[a-z0-9-]+\.sql$/;
/** A line of its own in a file that takes away what code of before still needed. */
const oldestCodeLine = /^-- oldest-code: (\d{4})$/m;

export interface Migration {
  /** From 1, without a gap. */
  readonly version: number;
  readonly name: string;
  readonly sql: string;
  /** SHA-256 of the text, in hex; ends of lines count as one character, whatever a checkout makes of them. */
  readonly checksum: string;
  /** Code that knows fewer migrations than this cannot work once it is applied; null where any can. */
  readonly oldestCode: number | null;
}

/** The files of a folder in their order. Throws where one is not the next number. */
export function readMigrations(folder = shipped): readonly Migration[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.sql'));
  return names.sort().map((name, index) => {
    if (Number(fileName.exec(name)?.[1]) !== index + 1)
      throw new Error(`migration ${name} is not number ${index + 1}`);
    const sql = readFileSync(new URL(name, folder), 'utf8').replaceAll('\r\n', '\n');
    const checksum = createHash('sha256').update(sql).digest('hex');
    const oldestCode = oldestCodeLine.exec(sql)?.[1];
    return {
      version: index + 1,
      name,
      sql,
      checksum,
      oldestCode: oldestCode === undefined ? null : Number(oldestCode),
    };
  });
}
