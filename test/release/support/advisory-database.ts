import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';

/** Where the scanner keeps the database of npm packages, below the folder it is told. */
const databasePath = join('osv-scalibr', 'npm', 'all.zip');

/** Writes a database that knows one advisory, of all versions of a package. */
export function writeDatabase(folder: string, id: string, name: string): void {
  const path = join(folder, databasePath);
  const day = '2026-01-01T00:00:00Z';
  const affected = [
    { package: { ecosystem: 'npm', name }, ranges: [{ type: 'SEMVER', events: [{ introduced: '0' }] }] },
  ];
  const advisory = { schema_version: '1.6.0', id, modified: day, published: day, affected };
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, zipOf(`${id}.json`, Buffer.from(JSON.stringify(advisory))));
}

/** Numbers of two or four bytes, the lowest first. */
function numbers(...values: readonly (readonly [value: number, bytes: 2 | 4])[]): Buffer {
  return Buffer.concat(
    values.map(([value, bytes]) => {
      const buffer = Buffer.alloc(bytes);
      buffer.writeUIntLE(value, 0, bytes);
      return buffer;
    }),
  );
}

/** An archive of one file, not compressed: header, file, directory, end (APPNOTE.TXT 4.3). */
function zipOf(name: string, bytes: Buffer): Buffer {
  const version = [20, 2] as const;
  const none = [0, 2] as const;
  const noTime = [0, 4] as const;
  const size = [bytes.length, 4] as const;
  // Flags, method, time, checksum, both sizes, lengths of the name and of the extra field.
  const fields = [none, none, noTime, [crc32(bytes), 4], size, size, [name.length, 2], none] as const;
  const file = Buffer.concat([numbers([0x04034b50, 4], version, ...fields), Buffer.from(name), bytes]);
  const directory = Buffer.concat([
    // Comment, disk, attributes inside and outside, where the file begins.
    numbers([0x02014b50, 4], version, version, ...fields, none, none, none, [0, 4], [0, 4]),
    Buffer.from(name),
  ]);
  const end = numbers(
    ...[[0x06054b50, 4] as const, none, none, [1, 2] as const, [1, 2] as const],
    ...[[directory.length, 4] as const, [file.length, 4] as const, none],
  );
  return Buffer.concat([file, directory, end]);
}
