/** Status line and header fields of one answer, read strictly (RFC 9112 sections 2 to 6). */
export interface ResponseHead {
  readonly status: number;
  /** Lower-case names; a field sent more than once is a list. Without a prototype: the vendor picks the names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly framing: BodyFraming;
  /** The connection may carry another request afterwards. */
  readonly persistent: boolean;
}

/** How the end of the body is found. */
export type BodyFraming =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'until-close' };

/** Far above what vendors send; each field becomes a property. */
const maxFields = 256;

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
/**
 * RFC 9110 5.1 and 5.5. No control character, so no CR or LF alone; no white space before the name or the colon: each
 * is a way to make two readers see two different answers. The space around a value is taken off by hand: a pattern for
 * it beside one for the value would try every way to share 64 KiB of blanks between the two. Without groups, which
 * would cost as much as all else that is done for a field.
 */
const fieldLine = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*$/;
const [tab, space] = [0x09, 0x20];
/** Fifteen digits are a safe integer. */
const decimal = /^\d{1,15}$/;

const noBody: BodyFraming = Object.freeze({ kind: 'none' });
const chunked: BodyFraming = Object.freeze({ kind: 'chunked' });
const untilClose: BodyFraming = Object.freeze({ kind: 'until-close' });

/** What decides where an answer ends. */
const framingNames: ReadonlySet<string> = new Set(['transfer-encoding', 'content-length']);

type Fields = Record<string, string | string[] | undefined>;

function isBlank(code: number): boolean {
  return code === space || code === tab;
}

/** False when the line is no header field. */
function addField(headers: Fields, line: string): boolean {
  if (!fieldLine.test(line)) return false;
  const colon = line.indexOf(':');
  const key = line.slice(0, colon).toLowerCase();
  let from = colon + 1;
  let to = line.length;
  while (from < to && isBlank(line.charCodeAt(from))) from += 1;
  while (to > from && isBlank(line.charCodeAt(to - 1))) to -= 1;
  // Readers differ on whether white space behind it belongs to the value.
  if (to < line.length && framingNames.has(key)) return false;
  const value = line.slice(from, to);
  const before = headers[key];
  if (before === undefined) headers[key] = value;
  else if (typeof before === 'string') headers[key] = [before, value];
  else before.push(value);
  return true;
}

/** Null for every way of saying it that two readers could understand differently (RFC 9112 section 6.3). */
function framingOf(status: number, minor: string, headers: Fields): BodyFraming | null {
  const coding = headers['transfer-encoding'];
  const length = headers['content-length'];
  if (coding !== undefined) {
    const plain = typeof coding === 'string' && coding.toLowerCase() === 'chunked';
    if (!plain || length !== undefined || minor === '0') return null;
    return status === 204 || status === 304 ? noBody : chunked;
  }
  if (length !== undefined && (typeof length !== 'string' || !decimal.test(length))) return null;
  if (status === 204 || status === 304) return noBody;
  if (length === undefined) return untilClose;
  const bytes = Number(length);
  return bytes === 0 ? noBody : { kind: 'length', bytes };
}

function staysOpen(minor: string, headers: Fields, framing: BodyFraming): boolean {
  if (minor === '0' || framing.kind === 'until-close') return false;
  const connection = headers['connection'];
  return connection === undefined || !/close/i.test(String(connection));
}

/** `text`: the bytes before the empty line, as Latin-1. Null when they are not a head that may be trusted. */
export function readResponseHead(text: string): ResponseHead | null {
  const lines = text.split('\r\n', maxFields + 2);
  const [, minor, code] = statusLine.exec(lines[0] as string) ?? [];
  if (minor === undefined || lines.length > maxFields + 1) return null;
  const headers: Fields = Object.create(null) as Fields;
  for (let at = 1; at < lines.length; at += 1) {
    if (!addField(headers, lines[at] as string)) return null;
  }
  const status = Number(code);
  const framing = status < 200 ? noBody : framingOf(status, minor, headers);
  if (framing === null) return null;
  return { status, headers, framing, persistent: staysOpen(minor, headers, framing) };
}

const timeoutHint = /(?:^|[\s,;])timeout\s*=\s*"?(\d{1,6})/i;

/** What `Keep-Alive: timeout` says, in milliseconds; null without one. */
export function keepAliveHint({ headers }: ResponseHead): number | null {
  const value = headers['keep-alive'];
  if (value === undefined) return null;
  const seconds = timeoutHint.exec(String(value))?.[1];
  return seconds === undefined ? null : Number(seconds) * 1000;
}
