import { createHash } from 'node:crypto';

/**
 * How lines of a report hang together. Each ends in its hash: SHA-256 of the hash that it follows, a line feed, and its
 * own text up to there: the very bytes that were written, so nobody writes them anew to check them. On a shell:
 * `printf '%s\n%s' "$HASH_BEFORE" "${LINE%,\"hash\":*}" | sha256sum`.
 */

/** What the first line follows: no other format of ours or of others begins so. */
export const beginning = 'model-gateway evidence 1';

/** A longer line is none of ours: a request names a tier of models and texts that have limits of their own. */
export const maxSealedLineBytes = 1024 * 1024;

const hashHead = ',"hash":"';
const tail = /,"hash":"([0-9a-f]{64})"(?:,"signature":"([A-Za-z0-9+/]{86}==)")?\}$/;

/** Of the line without its hash and closing brace. */
export function hashAfter(previous: string, text: string): string {
  return createHash('sha256').update(`${previous}\n${text}`).digest('hex');
}

export interface Sealed {
  /** With its line feed. */
  readonly line: string;
  readonly hash: string;
}

/** `value` as a line that follows the one of hash `previous`; `sign`: signs the hash of the last one. */
export function sealLine(previous: string, value: object, sign?: (hash: string) => string): Sealed {
  const text = JSON.stringify(value).slice(0, -1);
  const hash = hashAfter(previous, text);
  const signature = sign === undefined ? '' : `,"signature":"${sign(hash)}"`;
  return { line: `${text}${hashHead}${hash}"${signature}}\n`, hash };
}

/** A line as it was read. */
export interface ReadLine {
  readonly value: unknown;
  /** What was hashed of it. */
  readonly text: string;
  readonly hash: string;
  readonly signature: string | null;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decode(bytes: Uint8Array): string | null {
  try {
    return utf8.decode(bytes);
  } catch {
    return null;
  }
}

/** The value, and how reports write it; null for what is no JSON, or is nested deeper than anything of ours. */
function parse(text: string): { readonly value: unknown; readonly written: string } | null {
  try {
    const value: unknown = JSON.parse(text);
    return { value, written: JSON.stringify(value) };
  } catch {
    return null;
  }
}

/** A line without its line feed; or what is wrong with it, in words that fit behind "line 7". */
export function readLine(bytes: Uint8Array): ReadLine | string {
  const text = decode(bytes);
  if (text === null) return 'is not UTF-8';
  if (text.startsWith('\ufeff')) return 'begins with a byte order mark: the file was written anew';
  if (text.endsWith('\r')) return 'ends in a carriage return: the file was written anew';
  const parsed = parse(text);
  if (parsed === null) return 'is not JSON';
  // Two keys of one name, spaces, other spellings of a number: two readers would see two things.
  if (parsed.written !== text)
    return 'is not written as reports are: a key twice, spaces, or another spelling';
  const end = tail.exec(text);
  if (end === null) return 'does not end in its hash';
  const [, hash = '', signature = null] = end;
  return { value: parsed.value, text: text.slice(0, end.index), hash, signature };
}
