import type { UpstreamHeaders } from '../../core/outcome.ts';
import type { HeadFields } from './head-fields.ts';
import { readFields, valueEnd } from './head-fields.ts';

/** How the end of the body is found. */
export type BodyFraming =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'until-close' };

const noBody: BodyFraming = Object.freeze({ kind: 'none' });
const chunked: BodyFraming = Object.freeze({ kind: 'chunked' });
const untilClose: BodyFraming = Object.freeze({ kind: 'until-close' });

const timeoutHint = /(?:^|[\s,;])timeout\s*=\s*"?(\d{1,6})/i;

/** Status line and header fields of one answer, read strictly (RFC 9112 sections 2 to 6). */
export class ResponseHead {
  readonly status: number;
  readonly framing: BodyFraming;
  /** The connection may carry another request afterwards. */
  readonly persistent: boolean;
  readonly #fields: HeadFields;
  readonly #text: string;

  /** `text`: the lines that were read, as Latin-1. */
  constructor(status: number, framing: BodyFraming, persistent: boolean, fields: HeadFields, text: string) {
    this.status = status;
    this.framing = framing;
    this.persistent = persistent;
    this.#fields = fields;
    this.#text = text;
  }

  /** How the body is packed; null where the vendor says nothing of it. */
  get contentEncoding(): string | null {
    return this.#fields.contentEncoding;
  }

  /** Of what sort the body is; empty where the vendor says nothing of it. */
  get contentType(): string {
    return this.#fields.contentType ?? '';
  }

  /** What `Keep-Alive: timeout` says, in milliseconds; null without one. */
  get keepAliveMs(): number | null {
    const value = this.#fields.keepAlive;
    const seconds = value === null ? undefined : timeoutHint.exec(value)?.[1];
    return seconds === undefined ? null : Number(seconds) * 1000;
  }

  /**
   * Lower-case names; a field sent more than once is a list. Without a prototype: the vendor picks the names. Made anew
   * for whoever asks: of an answer that is well nobody does, and twenty-five fields take 4 µs.
   */
  get headers(): UpstreamHeaders {
    return headersOf(this.#text);
  }
}

const [tab, space] = [0x09, 0x20];
const isBlank = (code: number): boolean => code === space || code === tab;

/** By hand: a pattern for blanks at the end would be tried at each of 64 KiB of them that stand before it. */
function withoutBlanks(line: string, start: number): string {
  let from = start;
  let to = line.length;
  while (from < to && isBlank(line.charCodeAt(from))) from += 1;
  while (to > from && isBlank(line.charCodeAt(to - 1))) to -= 1;
  return line.slice(from, to);
}

/** The fields of lines that are known to be some. */
function headersOf(text: string): UpstreamHeaders {
  const headers = Object.create(null) as Record<string, string | string[] | undefined>;
  const lines = text.split('\r\n');
  for (let at = 1; at < lines.length; at += 1) {
    const line = lines[at] as string;
    const colon = line.indexOf(':');
    const key = line.slice(0, colon).toLowerCase();
    const value = withoutBlanks(line, colon + 1);
    const before = headers[key];
    if (before === undefined) headers[key] = value;
    else if (typeof before === 'string') headers[key] = [before, value];
    else before.push(value);
  }
  return headers;
}

/** `HTTP/1.1 200` begins with it: what does not is no HTTP of ours, and its end need not be waited for. */
export const httpPrefix = Buffer.from('HTTP/1.');
const minorAt = httpPrefix.length;
const statusAt = minorAt + 2;
const reasonAt = statusAt + 3;
const [zero, one, nine, carriageReturn] = [0x30, 0x31, 0x39, 0x0d];

/** The status of a line that says HTTP/1.0 or 1.1 and a number of three digits; -1 where it does not. */
function statusOf(bytes: Buffer): number {
  for (let at = 0; at < minorAt; at += 1) if (bytes[at] !== httpPrefix[at]) return -1;
  const minor = bytes[minorAt];
  if ((minor !== zero && minor !== one) || bytes[minorAt + 1] !== space) return -1;
  let status = 0;
  for (let at = statusAt; at < reasonAt; at += 1) {
    const byte = bytes[at] as number;
    if (byte < zero || byte > nine) return -1;
    status = status * 10 + byte - zero;
  }
  // A reason, be it empty, or the end of the line.
  const next = bytes[reasonAt];
  return status >= 100 && (next === space || next === carriageReturn) ? status : -1;
}

/** Null for every way of saying it that two readers could understand differently (RFC 9112 section 6.3). */
function framingOf(status: number, isOld: boolean, fields: HeadFields): BodyFraming | null {
  if (fields.codings > 0) {
    if (fields.codings > 1 || !fields.isChunked || fields.lengths > 0 || isOld) return null;
    return status === 204 || status === 304 ? noBody : chunked;
  }
  if (fields.lengths > 1 || fields.bytes < 0) return null;
  if (status === 204 || status === 304) return noBody;
  if (fields.lengths === 0) return untilClose;
  return fields.bytes === 0 ? noBody : { kind: 'length', bytes: fields.bytes };
}

/**
 * The older version knows no interim answers, and none may say how long it is (RFC 9110 section 8.6, RFC 9112 section
 * 6.1): what follows such a head is an answer to some readers, and a body to others.
 */
function interimFraming(isOld: boolean, { codings, lengths }: HeadFields): BodyFraming | null {
  return isOld || codings > 0 || lengths > 0 ? null : noBody;
}

/**
 * A 204 or 304 that says how long its body is has none all the same: a server that sends one sends it in front of the
 * next answer.
 */
function hasStrayBody(framing: BodyFraming, { codings, bytes }: HeadFields): boolean {
  return framing.kind === 'none' && (codings > 0 || bytes > 0);
}

/** The head before the empty line, whose CR LF CR LF begins at `end`. Null when it is none that may be trusted. */
export function readResponseHead(bytes: Buffer, end: number): ResponseHead | null {
  const status = statusOf(bytes);
  const fields = status < 0 ? null : readFields(bytes, valueEnd(bytes, reasonAt), end);
  if (fields === null) return null;
  const isOld = bytes[minorAt] === zero;
  const framing = status < 200 ? interimFraming(isOld, fields) : framingOf(status, isOld, fields);
  if (framing === null) return null;
  const mayStay = framing.kind !== 'until-close' && !hasStrayBody(framing, fields);
  const persistent = mayStay && !isOld && !fields.closes;
  return new ResponseHead(status, framing, persistent, fields, bytes.toString('latin1', 0, end));
}
