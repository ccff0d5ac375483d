/** The SSE decoder: what it costs to find the events of a stream, however the network cuts it. */
import { expect, test } from 'vitest';
import { SseDecoder } from '../../src/core/answer/sse-decoder.ts';
import { openAiStream } from '../harness/vendors/openai-wire.ts';
import type { Part } from './yardstick.ts';
import { compare } from './yardstick.ts';

const events = 100;
const maxEventBytes = 1024 * 1024;
/** Role, finish, usage and `[DONE]` are the other four. */
const words = Array.from({ length: events - 4 }, (_, index) => ` word${index}`);
const stream = openAiStream('gpt-test', { text: words }).map((event) => Buffer.from(event));
const body = Buffer.concat(stream);
const payloads = stream.slice(0, -1).map((event) => event.toString('utf8').slice('data: '.length));

/** Pieces of these lengths in turn: coprime to any event, so that cuts fall anywhere. */
function cut(lengths: readonly number[]): readonly Buffer[] {
  const pieces: Buffer[] = [];
  for (let start = 0; start < body.length; ) {
    const length = lengths[pieces.length % lengths.length] as number;
    pieces.push(body.subarray(start, start + length));
    start += length;
  }
  return pieces;
}

function decode(pieces: readonly Buffer[]): number {
  const decoder = new SseDecoder(maxEventBytes);
  let found = 0;
  for (const piece of pieces) found += decoder.push(piece).length;
  return found;
}

const cuts: Readonly<Record<string, readonly Buffer[]>> = {
  'SSE decoder: a stream in one read': [body],
  'SSE decoder: a read per event': stream,
  'SSE decoder: reads cut anywhere, several per event': cut([61, 97, 31]),
  'SSE decoder: byte by byte': cut([1]),
};

const parse: Part = {
  name: 'JSON.parse of the event',
  run: () => payloads.map((text) => JSON.parse(text) as unknown),
  times: payloads.length,
};

test('decoder', async ({ bench }) => {
  for (const pieces of Object.values(cuts)) expect(decode(pieces)).toBe(stream.length);
  const parts = Object.entries(cuts).map(([name, pieces]) => ({
    name,
    run: () => decode(pieces),
    times: stream.length,
  }));
  await compare(bench, parse, parts);
});
