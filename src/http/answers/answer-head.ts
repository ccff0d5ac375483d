import type { ServerResponse } from 'node:http';
import { keptSeconds, setHead, takeOverChunks } from '../connections/node-internals.ts';
import { headerLines, headText } from './head-text.ts';

/** The date of a head (RFC 9110 6.6.1), which is the same for a second. */
class HeadDate {
  #second = Number.NaN;
  #text = '';

  now(): string {
    const nowMs = Date.now();
    const second = Math.floor(nowMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#text = new Date(nowMs).toUTCString();
    }
    return this.#text;
  }
}

const date = new HeadDate();

type Headers = Readonly<Record<string, string>>;

const closing: Headers = Object.freeze({ connection: 'close' });

/** Writes the head of a whole answer of status 200. `headers` state its length. */
export function writeAnswerHead(response: ServerResponse, headers: Headers): void {
  const seconds = ownKeptSeconds(response, headers);
  if (seconds === null) response.writeHead(200, headers);
  else setHead(response, headText(headerLines(headers), date.now(), seconds));
}

/** The head of a stream of status 200, put together before it is known when and how its connection goes on. */
export class StreamHead {
  readonly #headers: Headers;
  readonly #lines: string;

  constructor(headers: Headers) {
    this.#headers = headers;
    this.#lines = `${headerLines(headers)}transfer-encoding: chunked\r\n`;
  }

  /** True when the body goes out in chunks, which the caller makes. `isLast`: its connection is closed behind it. */
  write(response: ServerResponse, isLast: boolean): boolean {
    // Not so where the client knows no chunks.
    const isOurs = response.useChunkedEncodingByDefault && !isLast;
    const seconds = isOurs ? ownKeptSeconds(response, this.#headers) : null;
    if (seconds !== null) {
      setHead(response, headText(this.#lines, date.now(), seconds));
      return true;
    }
    response.writeHead(200, isLast ? { ...this.#headers, ...closing } : this.#headers);
    return takeOverChunks(response);
  }
}

/** Null where Node's own head says something else of the connection. */
function ownKeptSeconds(response: ServerResponse, headers: Headers): number | null {
  if (headers['connection'] !== undefined) return null;
  const seconds = keptSeconds(response);
  return seconds === 0 ? null : seconds;
}
