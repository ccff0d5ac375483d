/** Thousands of clients that are too late in the same moment. */
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { answerParserError } from '../../../src/http/connections/parser-errors.ts';

const tooLate = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
/** Longer than such answers may take of a turn. */
const longMs = 60;

class Place {
  readonly writable = true;
  readonly bytesRead: number;
  readonly #writeMs: number;
  _httpMessage: { headersSent: boolean } | null = null;
  text = '';
  destroyed = false;

  constructor(bytesRead: number, writeMs = 0) {
    this.bytesRead = bytesRead;
    this.#writeMs = writeMs;
  }

  end(text: string): void {
    this.text += text;
    const until = performance.now() + this.#writeMs;
    while (performance.now() < until);
  }

  once(): void {}

  destroy(): void {
    this.destroyed = true;
  }
}

const refuse = (place: Place): void => answerParserError(tooLate, place as unknown as Socket);
const nextTurn = () => new Promise(setImmediate);

test('are answered over several turns, as they are found then', async () => {
  const [first, second, answered, silent] = [new Place(1, longMs), new Place(1), new Place(1), new Place(0)];
  for (const place of [first, second, answered, silent]) refuse(place);
  expect(first.text).toContain('HTTP/1.1 408');
  expect([second.text, answered.text, silent.destroyed]).toEqual(['', '', false]);
  answered._httpMessage = { headersSent: true };
  await nextTurn();
  expect(second.text).toContain('"code":"request_timeout"');
  expect([answered.text, answered.destroyed]).toEqual(['', true]);
  expect([silent.text, silent.destroyed]).toEqual(['', true]);
});
