import { setTimeout as pause } from 'node:timers/promises';
import type { Wire } from './vendor.ts';

/** What a vendor does wrong, and what its client must then see. */
export interface Fault {
  /** Part of the model name, so of log rows and dashboards too. */
  readonly id: string;
  /** In a reader's words. */
  readonly fault: string;
  readonly required: string;
  readonly stream: boolean;
  /** What the vendor does with one request. */
  readonly play: (wire: Wire) => void | Promise<void>;
  /** The vendor refused in so many words: its status and body reach the client of an override as they are. */
  readonly refusal?: Refusal;
  /** The answer is the gateway's to give only after its own limit for silence within a stream. */
  readonly waitsForIdleLimit?: boolean;
  /** Nobody listens at the address of this vendor. */
  readonly unreachable?: boolean;
}

export interface Refusal {
  readonly status: number;
  readonly retryAfter?: string;
}

const json = { 'content-type': 'application/json' };
const eventStream = { 'content-type': 'text/event-stream' };
/** Far beyond what an answer may weigh, and still no burden on a wire. */
const oversizedBytes = 64 * 1024 * 1024;
/** Tokens that arrive before a stream breaks. */
const openingTokens = 4;

const told = 'an error in its own shape within the time limit, no second call';
const verbatim = 'the vendor’s status, headers for retries and words, no second call';
const inBand = 'the tokens so far, then an error event, no [DONE], no second call';

/** The words of a refusal, by which a client's copy is recognised. */
export function refusalBody(status: number): string {
  const error = { message: `the crash test says ${status}`, type: 'crash_test', param: null, code: null };
  return JSON.stringify({ error });
}

function refusing(id: string, fault: string, refusal: Refusal): Fault {
  const retry = refusal.retryAfter === undefined ? {} : { 'retry-after': refusal.retryAfter };
  return {
    id,
    fault,
    required: verbatim,
    stream: false,
    refusal,
    play: (wire) => wire.answer(refusal.status, { ...json, ...retry }, refusalBody(refusal.status)),
  };
}

/** A 200 that is none, as JSON or as a stream. */
function rubbish(id: string, fault: string, type: Record<string, string>, body: string): Fault {
  return {
    id,
    fault,
    required: told,
    stream: type === eventStream,
    play: (wire) => wire.answer(200, type, body),
  };
}

/** Some tokens, then what `end` does. */
function broken(id: string, fault: string, end: (wire: Wire) => void): Fault {
  return {
    id,
    fault,
    required: inBand,
    stream: true,
    play: async (wire) => {
      wire.head(200, eventStream);
      for (const event of wire.shape.opening(openingTokens)) wire.write(event);
      // A reset discards what was not sent yet.
      await pause(20);
      end(wire);
    },
  };
}

async function oversized(wire: Wire): Promise<void> {
  wire.head(200, json);
  const [before = '', after = ''] = wire.shape.json('TEXT').split('TEXT');
  wire.write(before);
  const piece = 'x'.repeat(64 * 1024);
  for (let sent = 0; sent < oversizedBytes && wire.isOpen(); sent += piece.length)
    await wire.writeSlowly(piece);
  wire.write(after);
  wire.end();
}

/** The classic faults of upstreams, in the order of the table. */
export const faults: readonly Fault[] = [
  {
    id: 'refused-connection',
    fault: 'the connection is refused',
    required: told,
    stream: false,
    play: () => {},
    unreachable: true,
  },
  {
    id: 'reset-before-headers',
    fault: 'the connection is reset before the answer',
    required: told,
    stream: false,
    play: (wire) => wire.reset(),
  },
  {
    id: 'hang-before-headers',
    fault: 'no answer at all',
    required: told,
    stream: false,
    play: () => {},
  },
  {
    id: 'slow-first-token',
    fault: 'headers, then no token within the time limit',
    required: told,
    stream: true,
    play: (wire) => {
      wire.head(200, eventStream);
      for (const event of wire.shape.opening(0)) wire.write(event);
    },
  },
  refusing('error-500', 'status 500', { status: 500 }),
  refusing('overloaded-503', 'status 503 with Retry-After', { status: 503, retryAfter: '7' }),
  refusing('limited-429', 'status 429 with Retry-After', { status: 429, retryAfter: '9' }),
  refusing('refused-400', 'status 400: the request itself is refused', { status: 400 }),
  rubbish('garbage-json', 'status 200 with nonsense for JSON', json, 'it worked on my machine'),
  {
    id: 'truncated-json',
    fault: 'status 200 whose JSON ends in the middle',
    required: told,
    stream: false,
    play: (wire) => wire.answer(200, json, wire.shape.json().slice(0, 60)),
  },
  rubbish('empty-200', 'status 200 with nothing in it', json, ''),
  rubbish('html-200', 'status 200 with a page of HTML', { 'content-type': 'text/html' }, '<h1>Welcome</h1>'),
  { id: 'oversized', fault: '64 MiB of answer', required: told, stream: false, play: oversized },
  rubbish('garbage-stream', 'a stream whose first event is nonsense', eventStream, 'data: {"choices":[{\n\n'),
  {
    id: 'error-event-first',
    fault: 'a stream whose first event is an error',
    required: told,
    stream: true,
    play: (wire) => wire.answer(200, eventStream, wire.shape.errorEvent),
  },
  broken('error-event-later', 'an error event in the middle of a stream', (wire) => {
    wire.write(wire.shape.errorEvent);
    wire.end();
  }),
  broken('nonsense-later', 'an event of nonsense in the middle of a stream', (wire) => {
    wire.write('data: {"choices":[{\n\n');
    wire.end();
  }),
  broken('cut-stream', 'a stream that ends in the middle as if it were whole', (wire) => wire.end()),
  broken('reset-stream', 'a stream whose connection is reset in the middle', (wire) => wire.reset()),
  { ...broken('stalled-stream', 'a stream that stops in the middle', () => {}), waitsForIdleLimit: true },
  {
    id: 'no-done',
    fault: 'a whole stream without [DONE]',
    required: 'the whole answer',
    stream: true,
    play: (wire) => wire.answer(200, eventStream, wire.shape.withoutDone.join('')),
  },
];
