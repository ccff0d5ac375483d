import { expect, test } from 'vitest';
import { ResponseParser } from '../../../src/adapters/upstream/response-parser.ts';
import { cpuMsOf } from '../../harness/measure/cpu-time.ts';

/**
 * What a server sends before its body is read by patterns. Whatever it is made of, reading takes time in proportion to
 * its length: a pattern with two ways to share out blanks needs seconds for these 64 KiB, as each of its ends is tried.
 */
const longest = 63 * 1024;
/** In CPU time; in proportion it is a few milliseconds, also on a slow machine. */
const limitMs = 200;

const fill = (part: string): string => part.repeat(Math.floor(longest / part.length));
const fields = (line: string): string => `${line}\r\n`.repeat(250);
const chunked = (rest: string): string => `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${rest}`;
const line = 'x'.repeat(240);

const answers: Readonly<Record<string, string>> = {
  'blanks before a value that is none': `HTTP/1.1 200 OK\r\nx:${fill(' ')}\x01\r\n\r\n`,
  'tabs and spaces before a value that is none': `HTTP/1.1 200 OK\r\nx:${fill('\t ')}\x01\r\n\r\n`,
  'blanks behind a value': `HTTP/1.1 200 OK\r\nx: y${fill(' ')}\r\n\r\n`,
  'blanks in a value that is none': `HTTP/1.1 200 OK\r\nx: ${fill('y ')}\x7f\r\n\r\n`,
  'blanks before a framing value': `HTTP/1.1 200 OK\r\ncontent-length:${fill(' ')}1\r\n\r\n`,
  'blanks behind a framing value': `HTTP/1.1 200 OK\r\ncontent-length: 1${fill(' ')}\r\n\r\n`,
  'a name without a colon': `HTTP/1.1 200 OK\r\n${fill('a')}\r\n\r\n`,
  'a name before a blank': `HTTP/1.1 200 OK\r\n${fill('a')} : y\r\n\r\n`,
  'blanks alone': `HTTP/1.1 200 OK\r\n${fill(' ')}\r\n\r\n`,
  'a reason that is none': `HTTP/1.1 200 ${fill(' ')}\x01\r\n\r\n`,
  'digits for a status': `HTTP/1.1 ${fill('2')}\r\n\r\n`,
  'digits for a length': `HTTP/1.1 200 OK\r\ncontent-length: ${fill('1')}x\r\n\r\n`,
  'many fields of blanks': `HTTP/1.1 200 OK\r\n${fields(`x:${' '.repeat(240)}\x01`)}\r\n`,
  'many fields of one name': `HTTP/1.1 200 OK\r\n${fields(`set-cookie: ${line}`)}\r\n`,
  'a wish to close that is none': `HTTP/1.1 200 OK\r\nconnection: ${fill('clos')}\r\n\r\n`,
  'lines of blanks before a chunk': chunked(`${' '.repeat(1000)}\r\n`),
  'extensions of chunks': chunked(`1${';a'.repeat(500)}\x01\r\n`),
  'quoted extensions of chunks': chunked(`1${';a="b"'.repeat(150)};a="\r\n`),
  trailers: chunked(`0\r\n${`x:${' '.repeat(900)}\r\n`.repeat(17)}\r\n`),
};

test.each(Object.entries(answers))('%s are read, or refused, in no time', (_name, text) => {
  const parser = new ResponseParser({ onHead: () => undefined, onBody: () => undefined });
  const bytes = Buffer.from(text, 'latin1');
  const tookMs = cpuMsOf(() => parser.push(bytes));
  expect(parser.state).not.toBe('head');
  expect(tookMs).toBeLessThan(limitMs);
});
