import { setTimeout as delay } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { Pool } from 'undici';
import { serveParent } from './worker.ts';
import { EVENTS_PER_STREAM, jsonRequest, streamRequest } from './workload.ts';

/** The clients: a closed loop, each connection sends its next request when it has the whole answer. */

/** What is sent, and where. */
interface Sending {
  /** Each connection is one's of these, in turn. */
  readonly urls: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly stream: boolean;
}

/** Requests until `count` answers or `ms` are over, whichever is asked for; answered with a `LoopResult`. */
export interface LoopOrder extends Sending {
  readonly kind: 'loop';
  readonly connections: number;
  readonly count?: number;
  readonly ms?: number;
  /** Up to where an answer is timed: its end, or its first token, which is in the second event of a stream. */
  readonly until: 'end' | 'first token';
}

/** Opens `count` streams; answered when each has had its first event. */
interface HoldOrder extends Sending {
  readonly kind: 'hold';
  readonly count: number;
}

export type LoadOrder = LoopOrder | HoldOrder | { readonly kind: 'release' };

export interface LoopResult {
  readonly count: number;
  /** Median time of an answer, up to where it is timed, in ms. */
  readonly p50: number;
}

/** Spreads the beginnings of paced streams, so that their events do not come in step. */
const SPREAD_MS = 20;
/** Streams that are opened at the same time when many are held. */
const OPENING = 50;
const NEWLINE = 0x0a;

const doneMark = Buffer.from('data: [DONE]\n\n');
const eventMark = Buffer.from('\n\n');
const path = '/v1/chat/completions';

/** By address and number of connections: those of a target stay open between its slices. */
const pools = new Map<string, Pool>();
/** Streams that are held open: how to cut each. */
let held: Reading[] = [];

/** Reads one answer and checks it: 200; a stream has its events and its end. */
class Reading implements Dispatcher.DispatchHandler {
  controller: Dispatcher.DispatchController | null = null;
  /** Called with every part of a stream. */
  onEvent: (() => void) | null = null;
  #settle: (problem: string | null) => void;
  #isStream: boolean;
  #status = 0;
  events = 0;
  #tail: Buffer = Buffer.alloc(0);
  #bytes = 0;

  constructor(isStream: boolean, settle: (problem: string | null) => void) {
    this.#isStream = isStream;
    this.#settle = settle;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
  }

  onResponseStart(_controller: unknown, status: number): void {
    this.#status = status;
  }

  onResponseData(_controller: unknown, bytes: Buffer): void {
    this.#bytes += bytes.length;
    if (!this.#isStream) return;
    // A mark may be cut in two by the network.
    if (this.#tail.at(-1) === NEWLINE && bytes[0] === NEWLINE) this.events += 1;
    let from = bytes.indexOf(eventMark);
    for (; from >= 0; from = bytes.indexOf(eventMark, from + 2)) this.events += 1;
    this.#tail = bytes.length < doneMark.length ? Buffer.concat([this.#tail, bytes]) : bytes;
    this.onEvent?.();
  }

  onResponseEnd(): void {
    this.#settle(this.#problem());
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#settle(error.message);
  }

  /** Null, or what is wrong. */
  #problem(): string | null {
    if (this.#status !== 200) return `status ${this.#status}`;
    if (!this.#isStream) return this.#bytes > 0 ? null : 'an empty answer';
    if (!this.#tail.subarray(-doneMark.length).equals(doneMark)) return 'a stream without its end';
    return this.events >= EVENTS_PER_STREAM ? null : `a stream of ${this.events} events`;
  }
}

/** Resolves when the answer is whole, with the time at which its first token was there; rejects otherwise. */
function exchange(to: Pool, order: Sending): Promise<number> {
  return new Promise((resolve, reject) => {
    let firstMs = 0;
    const reading = new Reading(order.stream, (problem) => {
      if (problem === null) resolve(firstMs);
      else reject(new Error(problem));
    });
    reading.onEvent = () => {
      if (reading.events > 1) firstMs ||= performance.now();
    };
    to.dispatch(requestOf(order), reading);
  });
}

function requestOf({ stream, headers }: Sending): Dispatcher.DispatchOptions {
  return { path, method: 'POST', headers, body: stream ? streamRequest : jsonRequest };
}

async function runLoop(pools: readonly Pool[], order: LoopOrder): Promise<LoopResult> {
  const end = performance.now() + (order.ms ?? Number.POSITIVE_INFINITY);
  const times: number[] = [];
  let begun = 0;
  const client = async (to: Pool) => {
    if (order.stream) await delay(Math.random() * SPREAD_MS);
    while (performance.now() < end && begun < (order.count ?? Number.POSITIVE_INFINITY)) {
      begun += 1;
      const start = performance.now();
      const firstMs = await exchange(to, order);
      times.push((order.until === 'end' ? performance.now() : firstMs) - start);
    }
  };
  await Promise.all(Array.from({ length: order.connections }, (_, index) => client(turn(pools, index))));
  times.sort((a, b) => a - b);
  return { count: times.length, p50: times[times.length >> 1] ?? Number.NaN };
}

async function hold(pools: readonly Pool[], order: HoldOrder): Promise<void> {
  for (let open = 0; open < order.count; open += OPENING) {
    await Promise.all(Array.from({ length: OPENING }, (_, index) => holdOne(turn(pools, index), order)));
  }
}

function holdOne(to: Pool, order: HoldOrder): Promise<void> {
  return new Promise((resolve, reject) => {
    const reading = new Reading(true, (problem) => reject(new Error(problem ?? 'a held stream ended')));
    reading.onEvent = resolve;
    to.dispatch(requestOf(order), reading);
    held.push(reading);
  });
}

async function obey(order: LoadOrder): Promise<LoopResult | null> {
  if (order.kind === 'release') {
    for (const reading of held) reading.controller?.abort(new Error('released'));
    held = [];
    return null;
  }
  const connections = order.kind === 'hold' ? order.count : order.connections;
  const share = Math.ceil(connections / order.urls.length);
  const asked = order.urls.map((url) => poolOf(url, share));
  if (order.kind === 'loop') return runLoop(asked, order);
  await hold(asked, order);
  return null;
}

const turn = (pools: readonly Pool[], index: number): Pool => pools[index % pools.length] as Pool;

function poolOf(url: string, connections: number): Pool {
  const name = `${url} ${connections}`;
  const pool =
    pools.get(name) ?? new Pool(url, { connections, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
  pools.set(name, pool);
  return pool;
}

serveParent(null, obey);
