import type { ServerResponse } from 'node:http';
import { keptSeconds, setHead } from '../connections/node-internals.ts';
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

/** Writes the head of a whole answer of status 200. `headers` state its length. */
export function writeAnswerHead(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
  const seconds = keptSeconds(response);
  if (seconds === null || seconds === 0 || headers['connection'] !== undefined)
    response.writeHead(200, headers);
  else setHead(response, headText(headers, date.now(), seconds));
}
