import { crc32 } from 'node:zlib';

const checksumDigits = 8;

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(checksumDigits, '0');
}

/** One row of JSON as a line: its CRC-32, a space, the row. */
export function encodeSpoolLine(row: string): string {
  return `${checksum(row)} ${row}\n`;
}

/** The row of a line without its end; null when the line was torn or is not one of ours. */
export function decodeSpoolLine(line: string): string | null {
  const row = line.slice(checksumDigits + 1);
  const whole = row !== '' && line[checksumDigits] === ' ' && line.startsWith(checksum(row));
  return whole ? row : null;
}
