import { largestBigint } from '../largest-bigint.ts';
import { acceptableRequestId } from '../request/request-id.ts';
import { earliestMicros, latestMicros } from '../timestamp.ts';

/**
 * The opaque `cursor` of GET /v1/logs (SPEC 4.6): the place of the last row shown, and the `since` and `request_id` of
 * the walk, so that a client may follow `next_cursor` alone. It carries no authority: pages are always read
 * for the caller only, so a forged cursor can at most misplace the forger's own page.
 */
export interface LogCursor {
  readonly createdAtMicros: bigint;
  readonly id: bigint;
  readonly sinceMicros: bigint | null;
  readonly requestId: string | null;
}

const format = /^1,(-?\d{1,18}),(\d{1,19}),(-?\d{1,18})?(?:,(.+))?$/;
export const longestCursor = 256; // an encoding has 84 characters at most, with a request's id 256

function isInstant(micros: bigint): boolean {
  return micros >= earliestMicros && micros <= latestMicros;
}

export function encodeLogCursor(cursor: LogCursor): string {
  const request = cursor.requestId === null ? '' : `,${cursor.requestId}`;
  const text = `1,${cursor.createdAtMicros},${cursor.id},${cursor.sinceMicros ?? ''}${request}`;
  return Buffer.from(text, 'latin1').toString('base64url');
}

/** Null for anything `encodeLogCursor` did not make. */
export function decodeLogCursor(text: string): LogCursor | null {
  if (text.length > longestCursor) return null;
  const match = format.exec(Buffer.from(text, 'base64url').toString('latin1'));
  if (match === null) return null;
  const cursor: LogCursor = {
    createdAtMicros: BigInt(match[1] ?? ''),
    id: BigInt(match[2] ?? ''),
    sinceMicros: match[3] === undefined ? null : BigInt(match[3]),
    requestId: match[4] ?? null,
  };
  if (cursor.requestId !== null && !acceptableRequestId.test(cursor.requestId)) return null;
  if (cursor.id > largestBigint || !isInstant(cursor.createdAtMicros)) return null;
  if (cursor.sinceMicros !== null && !isInstant(cursor.sinceMicros)) return null;
  // Node's decoder ignores stray characters and spare bits; only the one true spelling is accepted.
  return encodeLogCursor(cursor) === text ? cursor : null;
}
