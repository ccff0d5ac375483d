import type { ServerResponse } from 'node:http';
import { keptSeconds, setHead, takeOverChunks } from '../connections/node-internals.ts';
import { headText } from './head-text.ts';

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

/** Writes the head of a whole answer of status 200. `headers` state its length. */
export function writeAnswerHead(response: ServerResponse, headers: Headers): void {
  if (!setOwnHead(response, headers)) response.writeHead(200, headers);
}

/** Writes the head of a stream of status 200. True when its body goes out in chunks, which the caller makes. */
export function writeStreamHead(response: ServerResponse, headers: Headers): boolean {
  // Not so where the client knows no chunks.
  const knowsChunks = response.useChunkedEncodingByDefault;
  if (knowsChunks && setOwnHead(response, { ...headers, 'transfer-encoding': 'chunked' })) return true;
  response.writeHead(200, headers);
  return takeOverChunks(response);
}

/** False where Node's own head says something else of the connection. */
function setOwnHead(response: ServerResponse, headers: Headers): boolean {
  const seconds = keptSeconds(response);
  if (seconds === null || seconds === 0 || headers['connection'] !== undefined) return false;
  setHead(response, headText(headers, date.now(), seconds));
  return true;
}
