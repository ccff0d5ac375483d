import type { FileHandle } from 'node:fs/promises';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Disk } from './disk.ts';
import { decodeSpoolLine } from './spool-line.ts';

const segmentNames = /^(\d{10})\.ndjson$/;
/** Of one batch. */
const batchRows = 200;
const chunkBytes = 256 * 1024;
/** A row is about a kilobyte; what runs on for longer without an end of line is garbage. */
const longestLineBytes = 1024 * 1024;
const newline = 0x0a;

export interface Segment {
  readonly path: string;
  readonly bytes: number;
}

export interface NumberedSegment extends Segment {
  readonly number: number;
}

/** Later ones come later in the order of names. */
export const segmentName = (number: number): string => `${String(number).padStart(10, '0')}.ndjson`;

/** Those of a folder, oldest first. Rejects where one cannot be looked at. */
export async function findSegments(folder: string): Promise<readonly NumberedSegment[]> {
  const segments: NumberedSegment[] = [];
  for (const name of (await readdir(folder)).sort()) {
    const number = segmentNames.exec(name)?.[1];
    if (number === undefined) continue;
    const path = join(folder, name);
    segments.push({ path, bytes: (await stat(path)).size, number: Number(number) });
  }
  return segments;
}

/** One group of lines read from a segment. */
export interface SpoolBatch {
  readonly rows: readonly string[];
  /** Lines that are not whole rows, as they were found. */
  readonly bad: readonly Buffer[];
}

async function* readChunks(file: FileHandle, disk: Disk): AsyncGenerator<Buffer> {
  for (let position = 0; ; ) {
    const chunk = Buffer.allocUnsafe(chunkBytes);
    const { bytesRead } = await disk.do(() => file.read(chunk, 0, chunkBytes, position));
    if (bytesRead === 0) return;
    position += bytesRead;
    yield chunk.subarray(0, bytesRead);
  }
}

function sort(lines: readonly Buffer[]): SpoolBatch {
  const rows: string[] = [];
  const bad: Buffer[] = [];
  for (const line of lines) {
    const row = decodeSpoolLine(line.toString('utf8'));
    if (row !== null) rows.push(row);
    else if (line.length > 0) bad.push(line);
  }
  return { rows, bad };
}

/**
 * Reads a segment that is no longer written to, in order, at most `batchRows` lines at a time. Whatever
 * the file holds, memory stays bounded: a line without end is handed out as bad in pieces.
 */
export async function* readSegment(path: string, disk: Disk): AsyncGenerator<SpoolBatch> {
  const file = await disk.open(path, 'r');
  try {
    let rest: Buffer = Buffer.alloc(0);
    let lines: Buffer[] = [];
    for await (const chunk of readChunks(file, disk)) {
      const data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let start = 0;
      for (let end = data.indexOf(newline); end >= 0; end = data.indexOf(newline, start)) {
        lines.push(data.subarray(start, end));
        start = end + 1;
        if (lines.length < batchRows) continue;
        yield sort(lines);
        lines = [];
      }
      rest = data.subarray(start);
      if (rest.length > longestLineBytes) {
        lines.push(rest);
        rest = Buffer.alloc(0);
      }
    }
    // The last line has no end only when its writer died in the middle of it.
    if (rest.length > 0) lines.push(rest);
    if (lines.length > 0) yield sort(lines);
  } finally {
    await disk.close(file);
  }
}

/** Its bytes are all that is known: how many of its rows were taken before, nobody can tell any more. */
export const removedBySomebody = ({ bytes }: Segment): Error =>
  new Error(`The file was removed by somebody, with up to ${bytes} bytes of rows that nobody has taken.`);
