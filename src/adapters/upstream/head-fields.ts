/** What the fields of a head say of the body and of the connection; all others are only proved to be fields. */
export class HeadFields {
  /** Fields that name a transfer coding. */
  codings = 0;
  /** The coding is `chunked` and nothing else. */
  isChunked = false;
  /** Fields that state a length. */
  lengths = 0;
  /** The length; -1 for one that is no number of at most fifteen digits, which are a safe integer. */
  bytes = 0;
  /** The vendor wants to close the connection. */
  closes = false;
  /** Of several fields of one name the values stand in a row, with commas; null without one. */
  keepAlive: string | null = null;
  contentEncoding: string | null = null;
  contentType: string | null = null;
}

/** Far above what vendors send; each may become a property. */
const maxFields = 256;

/**
 * RFC 9110 5.1 and 5.5: what a byte may be part of. No control character, so no CR or LF alone; no white space before
 * the name or the colon: each is a way to make two readers see two different answers.
 */
const roles = new Uint8Array(256);
const [ofValue, ofName] = [1, 2];
const [tab, lineFeed, carriageReturn, space, colon, zero, nine, del] = [
  0x09, 0x0a, 0x0d, 0x20, 0x3a, 0x30, 0x39, 0x7f,
];
roles.fill(ofValue, space);
roles[tab] = ofValue;
roles[del] = 0;
/** As a class of a pattern: what names, of extensions of chunks too, are made of (RFC 9110 section 5.6.2). */
export const tokenClass = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]";
const isToken = new RegExp(tokenClass);
for (let byte = 0; byte < roles.length; byte += 1) {
  if (isToken.test(String.fromCharCode(byte))) roles[byte] = ofValue | ofName;
}

const knownNames = [
  'connection',
  'keep-alive',
  'content-type',
  'content-length',
  'content-encoding',
  'transfer-encoding',
] as const;
type KnownName = (typeof knownNames)[number];
const shortestKnown = 10;
const longestKnown = 17;
const codingText = 'chunked';
const usualConnection = 'keep-alive';
/** Fifteen are a safe integer. */
const mostDigits = 15;

/** True where the bytes are `text`, which is of small letters and dashes, in any case. */
function spells(bytes: Buffer, from: number, to: number, text: string): boolean {
  if (to - from !== text.length) return false;
  for (let at = 0; at < text.length; at += 1) {
    // Sets the bit that capital letters lack. Of what a name or value may hold, a dash alone becomes a dash.
    if (((bytes[from + at] as number) | 0x20) !== text.charCodeAt(at)) return false;
  }
  return true;
}

function knownName(bytes: Buffer, from: number, to: number): KnownName | null {
  const length = to - from;
  if (length < shortestKnown || length > longestKnown) return null;
  for (const name of knownNames) if (name.length === length && spells(bytes, from, to, name)) return name;
  return null;
}

/** Where the value that begins at `from` ends. */
export function valueEnd(bytes: Buffer, from: number): number {
  let at = from;
  while (roles[bytes[at] as number] !== 0) at += 1;
  return at;
}

function nameEnd(bytes: Buffer, from: number): number {
  let at = from;
  while (((roles[bytes[at] as number] as number) & ofName) !== 0) at += 1;
  return at;
}

function isBlank(byte: number | undefined): boolean {
  return byte === space || byte === tab;
}

/** -1 where it is none. */
function decimalOf(bytes: Buffer, from: number, to: number): number {
  if (to === from || to - from > mostDigits) return -1;
  let value = 0;
  for (let at = from; at < to; at += 1) {
    const byte = bytes[at] as number;
    if (byte < zero || byte > nine) return -1;
    value = value * 10 + byte - zero;
  }
  return value;
}

/** No type, coding or time limit is as long; what is read of it is kept until its answer is whole. */
const maxValueLength = 1024;

function joined(before: string | null, bytes: Buffer, from: number, to: number): string {
  const value = bytes.toString('latin1', from, Math.min(to, from + maxValueLength));
  if (before === null) return value;
  return before.length < maxValueLength ? `${before},${value}` : before;
}

/** False where the field may not be as it is. */
function take(fields: HeadFields, name: KnownName, bytes: Buffer, lineFrom: number, lineTo: number): boolean {
  let [from, to] = [lineFrom, lineTo];
  while (from < to && isBlank(bytes[from])) from += 1;
  while (to > from && isBlank(bytes[to - 1])) to -= 1;
  switch (name) {
    case 'content-length':
      fields.lengths += 1;
      fields.bytes = decimalOf(bytes, from, to);
      // Readers differ on whether white space behind it belongs to the value.
      return to === lineTo;
    case 'transfer-encoding':
      fields.codings += 1;
      fields.isChunked = spells(bytes, from, to, codingText);
      return to === lineTo;
    case 'connection':
      fields.closes ||=
        !spells(bytes, from, to, usualConnection) && /close/i.test(bytes.toString('latin1', from, to));
      return true;
    case 'keep-alive':
      fields.keepAlive = joined(fields.keepAlive, bytes, from, to);
      return true;
    case 'content-encoding':
      fields.contentEncoding = joined(fields.contentEncoding, bytes, from, to);
      return true;
    case 'content-type':
      fields.contentType = joined(fields.contentType, bytes, from, to);
      return true;
  }
}

/**
 * Reads the lines between `from`, where the status line ends, and `end`, where the empty line begins: CR LF stand at
 * both. Null where one is no header field. By bytes and without a string for each line and name: 1 µs for twenty-five
 * fields instead of 5, and 0.1 instead of 0.9 for three.
 */
export function readFields(bytes: Buffer, from: number, end: number): HeadFields | null {
  const fields = new HeadFields();
  let count = 0;
  for (let at = from; at < end; ) {
    if (bytes[at] !== carriageReturn || bytes[at + 1] !== lineFeed) return null;
    const start = at + 2;
    const colonAt = nameEnd(bytes, start);
    if (colonAt === start || bytes[colonAt] !== colon) return null;
    at = valueEnd(bytes, colonAt + 1);
    count += 1;
    if (count > maxFields) return null;
    const name = knownName(bytes, start, colonAt);
    if (name !== null && !take(fields, name, bytes, colonAt + 1, at)) return null;
  }
  return fields;
}
